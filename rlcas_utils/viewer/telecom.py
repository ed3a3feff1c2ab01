"""Telecom episodes as HTML: the call as a chat, the customer's phone, and tau2's checks at the end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from rlcas_utils.telecom.verdict import Verdict
from rlcas_utils.viewer.page import esc

LONG = 260  # characters of a tool's answer that are shown without unfolding
_MARKERS = {
    "###STOP###": "(hangs up)",
    "###TRANSFER###": "(is transferred)",
    "###OUT-OF-SCOPE###": "(gives up)",
}
_RULES = "If the tool call does not return"  # from here on tau2 tells a simulator how to simulate
_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)


def chat(messages: Sequence[Any], thoughts: Sequence[str] = (), note: str = "") -> str:
    """Return a call as a chat.

    Args:
        messages: tau2's messages in order.
        thoughts: What the agent thought before each of its own messages after the greeting.
        note: A line of status at the end.
    """
    lines, spoken = [], -1
    for message in _flat(messages):
        if message.role == "assistant":
            spoken += 1
        thought = thoughts[spoken - 1] if message.role == "assistant" and 1 <= spoken <= len(thoughts) else ""
        lines.append(_line(message, thought))
    if note:
        lines.append(f'<div class="rv-line tool">{esc(note)}</div>')
    return (
        '<div class="rv-chat" role="log" tabindex="0" aria-label="The call so far" '
        f'aria-live="polite"><div class="rv-lines">{"".join(lines)}</div></div>'
    )


def thought_of(text: str) -> str:
    """Return the thinking inside a model's turn."""
    return " ".join(part.strip() for part in _THOUGHT.findall(text))


def _flat(messages: Iterable[Any]) -> Iterable[Any]:
    for message in messages:
        yield from getattr(message, "tool_messages", None) or [message]


def _line(message: Any, thought: str) -> str:
    why = f'<span class="rv-why">{esc(thought)}\n</span>' if thought else ""
    if message.role == "tool":
        whose = "the phone answers" if message.requestor == "user" else "the company's system answers"
        return f'<div class="rv-line tool"><span class="who">{whose}</span>{_folded(message.content)}</div>'
    side, who = ("agent", "Agent") if message.role == "assistant" else ("customer", "Customer")
    calls = "".join(f"<code>{esc(_call(call))}</code>" for call in message.tool_calls or ())
    if calls:
        who += " uses"
    said = message.content or ""
    for marker, words in _MARKERS.items():
        said = said.replace(marker, words)
    return f'<div class="rv-line {side}"><span class="who">{who}</span>{why}{esc(said)}{calls}</div>'


def _call(call: Any) -> str:
    arguments = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in call.arguments.items())
    return f"{call.name}({arguments})"


def _folded(content: str | None) -> str:
    content = content or ""
    if len(content) <= LONG:
        return esc(content)
    head = esc(content[: LONG // 2].rstrip())
    return f"<details><summary>{head} … ({len(content)} characters)</summary>{esc(content)}</details>"


def phone(device: Any, surroundings: Any, bar: str) -> str:
    """Return the customer's phone.

    Args:
        device: tau2's device state.
        surroundings: tau2's state around it: place, line, payment request.
        bar: Text of the status bar.
    """
    rows = "".join(f"<dt>{esc(k)}</dt><dd>{esc(v)}</dd>" for k, v in _facts(device, surroundings))
    return (
        '<div class="rv-phone" role="group" aria-label="The customer\'s phone">'
        f'<div class="bar">{esc(bar)}</div><dl>{rows}</dl></div>'
    )


def _facts(device: Any, around: Any) -> list[tuple[str, str]]:
    apn, due = device.active_apn_settings, around.payment_request
    apps = {
        name: ", ".join(p for p, granted in app.permissions.model_dump().items() if granted) or "none"
        for name, app in device.app_statuses.items()
    }
    vpn = _on(device.vpn_connected)
    if device.vpn_connected and device.vpn_details:
        vpn += f", server {device.vpn_details.server_performance.value}"
    facts = [
        ("SIM card", device.sim_card_status.value.replace("_", " ")),
        ("Airplane Mode", _on(device.airplane_mode)),
        (
            "Network",
            f"{device.network_connection_status.value.replace('_', ' ')}, "
            f"{device.network_technology_connected.value}, "
            f"signal {device.network_signal_strength.value}",
        ),
        ("Mobile data", _on(device.data_enabled)),
        ("Data roaming", _on(device.roaming_enabled)),
        ("Network mode", device.network_mode_preference.value.replace("_", " ")),
        ("Data Saver", _on(device.data_saver_mode)),
        ("APN", f"{apn.apn_name.value}{', resets at reboot' if apn.reset_at_reboot else ''}"),
        ("MMSC address", apn.mmsc_url or "not set"),
        ("VPN", vpn),
        ("Wi-Fi", _on(device.wifi_enabled)),
        (
            "Wi-Fi Calling",
            f"{_on(device.wifi_calling_enabled)}, MMS over Wi-Fi {_on(device.wifi_calling_mms_over_wifi)}",
        ),
        *((f"App {name}", f"may use: {granted}") for name, granted in apps.items()),
    ]
    if due is not None:
        paid = "paid" if due.paid else "waits for you"
        facts.append(("Payment request", f"{due.bill_id}, ${due.amount_due:.2f}, {paid}"))
    return facts


def _on(value: bool) -> str:
    return "on" if value else "off"


def scenario(told: Any) -> str:
    """Return what tau2 tells a customer about themselves."""
    said = told.instructions
    wishes, rule, rest = said.task_instructions.partition(_RULES)
    rows = _rows(("Why you call", said.reason_for_call), ("What you know", said.known_info))
    rows += _rows(("What you want", wishes))
    more = _rows(("Who you are", told.persona), ("tau2's rules for its simulated customers", rule + rest))
    folded = f"<details><summary>More about you</summary>{more}</details>" if more else ""
    head = '<section class="rv-role" aria-label="Your part"><h4>You are the customer</h4>'
    return f"{head}{rows}{folded}</section>"


def _rows(*parts: tuple[str, str | None]) -> str:
    return "".join(f"<p><strong>{name}:</strong> {esc(words.strip())}</p>" for name, words in parts if words)


def verdict(result: Verdict) -> str:
    """Return tau2's reward with every check it made, met or unmet."""
    lines = "".join(
        f'<li><span class="{"good" if c.met else "bad"}">{"✓ met" if c.met else "✗ unmet"}</span> '
        f"{esc(c.text)}</li>"
        for c in result.checks
    )
    done = "".join(
        f"<li>{'✓ done' if c.met else '– not done'}: <code>{esc(c.text)}</code></li>" for c in result.actions
    )
    kind = "good" if result.reward == 1.0 else "bad"
    flags = "".join(f'<p class="bad">{esc(words)}.</p>' for words in result.flags)
    return (
        f'<div role="status"><p><span class="{kind}">Reward {result.reward:g}</span> '
        f'<span class="soft">partial score {result.partial:.2f}; '
        f"the call ended: {esc(result.ending)}</span></p>"
        f'{flags}<ul class="rv-checks" aria-label="Checks that decide">{lines}</ul>'
        f"<details><summary>Expected actions ({sum(c.met for c in result.actions)} of {len(result.actions)} "
        f'done)</summary><ul class="rv-checks">{done}</ul></details></div>'
    )
