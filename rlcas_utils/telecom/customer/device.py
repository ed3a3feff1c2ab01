"""The customer's 30 device tools, as tables: which read, which flip a switch, which look at what."""

DEVICE_TOOLS: tuple[str, ...] = (
    "can_send_mms",
    "check_apn_settings",
    "check_app_permissions",
    "check_app_status",
    "check_data_restriction_status",
    "check_installed_apps",
    "check_network_mode_preference",
    "check_network_status",
    "check_payment_request",
    "check_sim_status",
    "check_status_bar",
    "check_vpn_status",
    "check_wifi_calling_status",
    "check_wifi_status",
    "run_speed_test",
    "connect_vpn",
    "disconnect_vpn",
    "grant_app_permission",
    "make_payment",
    "reboot_device",
    "reseat_sim_card",
    "reset_apn_settings",
    "set_apn_settings",
    "set_network_mode_preference",
    "toggle_airplane_mode",
    "toggle_data",
    "toggle_data_saver_mode",
    "toggle_roaming",
    "toggle_wifi",
    "toggle_wifi_calling",
)
"""The 30 tools that only the customer can run."""

READING_TOOLS: frozenset[str] = frozenset(
    tool for tool in DEVICE_TOOLS if tool.startswith("check_") or tool in ("run_speed_test", "can_send_mms")
)
"""The 15 of them that change nothing."""

SWITCH_TOOLS: dict[str, str] = {
    "airplane": "toggle_airplane_mode",
    "mobile_data": "toggle_data",
    "data_saver": "toggle_data_saver_mode",
    "roaming": "toggle_roaming",
    "wifi_calling": "toggle_wifi_calling",
    "wifi": "toggle_wifi",
}
"""Settings with two positions; their tools flip them, whatever the position."""

VPN_TOOLS: dict[str, str] = {"on": "connect_vpn", "off": "disconnect_vpn"}

CHECK_TOOLS: dict[str, str] = {
    "status_bar": "check_status_bar",
    "network": "check_network_status",
    "airplane": "check_network_status",
    "mobile_data": "check_network_status",
    "roaming": "check_network_status",
    "sim": "check_sim_status",
    "speed": "run_speed_test",
    "mms": "can_send_mms",
    "apn": "check_apn_settings",
    "permissions": "check_app_permissions",
    "app": "check_app_status",
    "apps": "check_installed_apps",
    "wifi_calling": "check_wifi_calling_status",
    "wifi": "check_wifi_status",
    "vpn": "check_vpn_status",
    "data_saver": "check_data_restriction_status",
    "network_mode": "check_network_mode_preference",
    "payment_request": "check_payment_request",
}
"""Topic -> the tool with which the customer looks at it."""
