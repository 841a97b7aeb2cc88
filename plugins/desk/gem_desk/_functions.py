"""The functions of the desk, as a model sees them, and calling them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gem_core.errors import ToolError
from gem_core.tool import Function, ToolResult
from gem_core.tools import ParsedCall
from gem_desk._shop import REASONS, TO_CARD, TO_GIFT_CARD, Shop

FIND, TRANSFER = "find_customer", "transfer_to_human"
_TEXT: Mapping[str, Any] = {"type": "string"}
_TEXTS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
_ADDRESS = {"street": _TEXT, "city": _TEXT, "zip_code": _TEXT}
_SWAP = {"order_id": _TEXT, "item_ids": _TEXTS, "new_item_ids": _TEXTS}


def _function(name: str, description: str, properties: Mapping[str, Any], *, all_required: bool = True) -> Function:
    required = [*properties] if all_required else []
    return Function(name, description, {"type": "object", "properties": {**properties}, "required": required})


FUNCTIONS = (
    _function(
        FIND,
        "Find a customer by email, or by name and zip_code.",
        {"email": _TEXT, "name": _TEXT, "zip_code": _TEXT},
        all_required=False,
    ),
    _function("get_customer", "Data and order ids of a customer.", {"customer_id": _TEXT}),
    _function("get_order", "Status, dates, address, items and payment of an order.", {"order_id": _TEXT}),
    _function("list_products", "Names of all products by id.", {}),
    _function("get_product", "A product with all its items, their prices and availability.", {"product_id": _TEXT}),
    _function(
        "cancel_order",
        "Cancel a pending order and refund it.",
        {"order_id": _TEXT, "reason": {"type": "string", "enum": [*REASONS]}},
    ),
    _function("change_order_address", "Send a pending order to another address.", {"order_id": _TEXT, **_ADDRESS}),
    _function("change_items", "Swap items of a pending order for others of the same products.", _SWAP),
    _function(
        "return_items",
        "Take items of a delivered order back, in one call for all of them.",
        {"order_id": _TEXT, "item_ids": _TEXTS, "refund_to": {"type": "string", "enum": [TO_CARD, TO_GIFT_CARD]}},
    ),
    _function("exchange_items", "Exchange items of a delivered order, in one call for all of them.", _SWAP),
    _function("change_customer_address", "Change the address of a customer.", {"customer_id": _TEXT, **_ADDRESS}),
    _function(TRANSFER, "Hand the customer over to a colleague; the conversation ends.", {}),
)
"""What an agent may call."""


def called(shop: Shop, call: ParsedCall) -> ToolResult:
    """The result of a call, as JSON text. A call that is impossible changes nothing."""
    if call.problem is not None:
        return ToolResult(f"Error: {call.problem}", error=True)
    try:
        result = getattr(shop, call.function)(**call.arguments)
    except ToolError as error:
        return ToolResult(f"Error: {error}", error=True)
    return ToolResult(result if isinstance(result, str) else json.dumps(result))
