"""The tech-support workflow as generators: each yields a `Step` and receives the text that comes back.

Identify the customer; restore signal (path 1); restore the data connection (path 2.1); make data fast
(path 2.2); make MMS go out (path 3). Repairs that the phone shows together are done one after the other
before testing again, because each test costs a turn.
"""

from rlcas_utils.telecom.expert import reading
from rlcas_utils.telecom.expert.steps import MAX_REPEATS, Case, Flow, ask, call, finish, transfer

REFUEL_GB = 2.0  # the policy's maximum, and what these customers want


def identify(case: Case) -> Flow:
    """Phone number, customer record, and the line that belongs to the number."""
    number = ""
    while not number:
        number = reading.phone_number((yield from ask(case, "ask phone")))
    customer = reading.record(
        (yield from call("find customer", "get_customer_by_phone", phone_number=number))
    )
    case.notes.customer = customer
    for position, line_id in enumerate(customer.get("line_ids", []), start=1):
        line = reading.record((yield from call(f"read line {position}", "get_details_by_id", id=line_id)))
        if line.get("phone_number") == number:
            case.notes.line = line
            return
    yield from transfer(case, "The customer's line could not be found.")


def _sim(case: Case, reseated: bool) -> Flow:
    """SIM card present and unlocked. Returns True once there is signal."""
    reply = yield from ask(case, "recheck sim" if reseated else "read sim")
    if reading.sim_missing(reply):
        reply = yield from ask(case, "reseat sim")
        if reading.has_signal(reply):
            return True
        reply = yield from ask(case, "recheck sim")
    if reading.sim_locked(reply):
        yield from transfer(case, "SIM card is locked")
    return False


def _apn(case: Case) -> Flow:
    """APN of the network. Returns True once there is signal."""
    if not reading.apn_broken((yield from ask(case, "read apn"))):
        return False
    reply = yield from ask(case, "reset apn", "reboot")
    case.notes.done.add("apn reset")
    return reading.has_signal(reply)


def _overdue(case: Case) -> Flow:
    """The overdue bill: usually the last one on record, otherwise somewhere among all of them."""
    bill = reading.record((yield from call("read bill", "get_details_by_id", id=case.notes.last_bill)))
    if bill.get("status") == "Overdue":
        return bill
    customer_id = case.notes.customer["customer_id"]
    bills = reading.record((yield from call("read bills", "get_bills_for_customer", customer_id=customer_id)))
    return next((bill for bill in bills if bill["status"] == "Overdue"), None)


def _resume(case: Case) -> Flow:
    """Lift the suspension after payment. Returns True once there is signal."""
    customer_id, line_id = case.notes.customer["customer_id"], case.notes.line["line_id"]
    bill = yield from _overdue(case)
    if bill is None:
        yield from transfer(case, "The line is suspended for a reason that cannot be lifted")
    yield from call("send request", "send_payment_request", customer_id=customer_id, bill_id=bill["bill_id"])
    yield from ask(case, "pay bill", bill=bill["bill_id"])
    for _ in range(1 + MAX_REPEATS):
        paid = reading.record((yield from call("verify bill", "get_details_by_id", id=bill["bill_id"])))
        if paid.get("status") == "Paid":
            break
        yield from ask(case, "pay bill again")
    else:
        yield from transfer(case, "The overdue bill was not paid")
    yield from call("resume line", "resume_line", customer_id=customer_id, line_id=line_id)
    case.notes.line = {**case.notes.line, "status": "Active"}
    return reading.has_signal((yield from ask(case, "reboot for line")))


def restore_signal(case: Case, reseated: bool = False) -> Flow:
    """Path 1 after Airplane Mode: SIM card, APN, line. Returns with signal, or transfers."""
    if (yield from _sim(case, reseated)) or (yield from _apn(case)):
        return
    if case.notes.suspended and case.notes.expired:
        yield from transfer(case, "The line is suspended and its contract has ended")
    if case.notes.suspended and (yield from _resume(case)):
        return
    yield from transfer(case, "There is still no service after all steps")


def service(case: Case) -> Flow:
    """No service at all."""
    reply = yield from ask(case, "read bar")
    if reading.airplane_on(reply):
        reply = yield from ask(case, "airplane off")
    if not reading.has_signal(reply):
        yield from restore_signal(case)


def _repair(case: Case, name: str, step: str) -> Flow:
    """Do an open repair, if it is open. Returns the customer's answer, or ""."""
    if name not in case.notes.todo:
        return ""
    reply = yield from ask(case, step)
    case.notes.todo.discard(name)
    return reply


def _read_network(case: Case) -> Flow:
    """Network status: everything that keeps the phone from the network, at one glance."""
    reply = yield from ask(case, "read network")
    seen = {
        "airplane": reading.airplane_on(reply),
        "sim": reading.sim_missing(reply),
        "data": reading.data_off(reply),
        "roaming": reading.phone_roaming_off(reply),
    }
    case.notes.todo |= {name for name, is_open in seen.items() if is_open} | {"abroad", "usage", "bar"}
    case.notes.see_generation(reply)
    return reply


def connection(case: Case) -> Flow:
    """Path 2.1: signal, data switch, roaming, data allowance."""
    reply = yield from _read_network(case)
    reseated = "sim" in case.notes.todo
    reply = (yield from _repair(case, "airplane", "airplane off")) or reply
    reply = (yield from _repair(case, "sim", "reseat sim")) or reply
    if not reading.has_signal(reply):
        yield from restore_signal(case, reseated)
    yield from _repair(case, "data", "data on")
    yield from _roaming(case)
    yield from _allowance(case)


def _roaming(case: Case) -> Flow:
    """Roaming of the line and of the phone are two switches; a traveller needs both."""
    for _ in range(1 + MAX_REPEATS):
        reply = yield from ask(case, "ask abroad")
        if reading.tells_location(reply):
            break
    case.notes.todo.discard("abroad")
    if not reading.is_abroad(reply):
        case.notes.todo.discard("roaming")
        return
    if not case.notes.line["roaming_enabled"]:
        ids = {"customer_id": case.notes.customer["customer_id"], "line_id": case.notes.line["line_id"]}
        yield from call("line roaming on", "enable_roaming", **ids)
        case.notes.line = {**case.notes.line, "roaming_enabled": True}
    yield from _repair(case, "roaming", "roaming on")


def _allowance(case: Case) -> Flow:
    """Refuel if the month's data is used up."""
    ids = {"customer_id": case.notes.customer["customer_id"], "line_id": case.notes.line["line_id"]}
    usage = reading.record((yield from call("read usage", "get_data_usage", **ids)))
    limit = float(usage["data_limit_gb"]) + float(usage["data_refueling_gb"])
    if float(usage["data_used_gb"]) >= limit:
        plan = reading.record(
            (yield from call("read plan", "get_details_by_id", id=case.notes.line["plan_id"]))
        )
        price = REFUEL_GB * float(plan["data_refueling_price_per_gb"])
        if reading.agrees((yield from ask(case, "offer refuel", price=price))):
            yield from call("refuel", "refuel_data", **ids, gb_amount=REFUEL_GB)
    case.notes.todo.discard("usage")


def data(case: Case) -> Flow:
    """Mobile data absent or slow."""
    reply = yield from ask(case, "test speed")
    if reading.speed_excellent(reply):
        return
    if reading.no_connection(reply):
        yield from connection(case)
    case.notes.todo |= {"bar"} - case.notes.done
    yield from _repair(case, "bar", "read bar")
    yield from _repair(case, "saver", "saver off")
    yield from _repair(case, "mode", "mode up")
    yield from _repair(case, "vpn", "vpn off")
    if not reading.speed_excellent((yield from ask(case, "test speed"))):
        yield from transfer(case, "Mobile data is still not excellent after all steps")


def mms(case: Case) -> Flow:
    """Picture messages do not go out."""
    if reading.mms_works((yield from ask(case, "test mms"))):
        return
    yield from connection(case)
    yield from _repair(case, "bar", "read bar")
    yield from _repair(case, "mode", "mode up")
    if reading.wifi_calling_on((yield from ask(case, "read wifi calling"))):
        yield from ask(case, "wifi calling off")
    missing = reading.missing_permissions((yield from ask(case, "read permissions")))
    case.notes.todo |= set(missing)
    for name in missing:
        yield from _repair(case, name, f"grant {name}")
    if "apn reset" not in case.notes.done and reading.mmsc_missing((yield from ask(case, "read apn"))):
        yield from ask(case, "reset apn", "reboot")
    if not reading.mms_works((yield from ask(case, "test mms"))):
        yield from transfer(case, "MMS still fails after all steps")


PATHS = {"service": service, "data": data, "mms": mms}


def run(case: Case, opening: str) -> Flow:
    """The whole conversation, from the customer's first message on; never ends by itself."""
    case.notes.issue = reading.issue(opening)
    yield from identify(case)
    yield from PATHS[case.notes.issue](case)
    yield from finish()
