"""The shop's database, and everything that can be done to it.

The database is plain JSON data: `customers`, `products`, `items` and `orders` by their ids, and `transferred`. Every
method checks what is possible, not what the policy of the desk allows: that is the policy's business.
"""

from __future__ import annotations

import copy
import functools
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from gem_core.errors import ToolError

Record: TypeAlias = "dict[str, Any]"

REASONS = ("no longer needed", "ordered by mistake")
TO_CARD, TO_GIFT_CARD = "original payment", "gift card"
_MAX_LENGTH = 200
"""Characters of a text that the database takes."""


@functools.lru_cache(maxsize=1)
def _bundled() -> str:
    return importlib.resources.files("gem_desk").joinpath("shop.json").read_text(encoding="utf-8")


class Shop:
    """A database of its own, as it is in the morning. Methods raise `ToolError` with a text for the model."""

    def __init__(self) -> None:
        self.data: Record = json.loads(_bundled())

    def find_customer(self, email: str = "", name: str = "", zip_code: str = "") -> Record:
        """The customer with this email, or with this name and postcode; upper and lower case are the same."""
        if not email and not (name and zip_code):
            raise ToolError("give an email, or a name and a zip_code")
        for customer in self._all("customers"):
            by_name = (customer["name"].lower(), customer["zip_code"]) == (name.lower().strip(), zip_code.strip())
            if customer["email"] == email.lower().strip() if email else by_name:
                return customer
        raise ToolError("there is no such customer")

    def get_customer(self, customer_id: str) -> Record:
        """A customer with the ids of all orders."""
        customer = self._one("customers", customer_id)
        orders = [order["id"] for order in self._all("orders") if order["customer_id"] == customer_id]
        return {**customer, "orders": orders}

    def get_order(self, order_id: str) -> Record:
        """An order with the name, options and price of each item."""
        order = self._one("orders", order_id)
        return {**order, "items": [self._described(one) for one in order["items"]]}

    def get_product(self, product_id: str) -> Record:
        """A product with all its items."""
        product = self._one("products", product_id)
        return {**product, "items": [item for item in self._all("items") if item["product_id"] == product_id]}

    def list_products(self) -> Record:
        """Names of all products by their ids."""
        return {product["id"]: product["name"] for product in self._all("products")}

    def cancel_order(self, order_id: str, reason: str) -> Record:
        """Cancel a pending order and pay its price back."""
        order = self._with_status(order_id, "pending")
        if reason not in REASONS:
            raise ToolError(f"reason is one of: {', '.join(REASONS)}")
        self._pay_back(order, self._price(order["items"]), TO_CARD)
        order |= {"status": "cancelled", "reason": reason}
        return self.get_order(order_id)

    def change_order_address(self, order_id: str, street: str, city: str, zip_code: str) -> Record:
        """Send a pending order to another address."""
        order = self._with_status(order_id, "pending")
        order["address"] = _address(street, city, zip_code)
        return self.get_order(order_id)

    def change_customer_address(self, customer_id: str, street: str, city: str, zip_code: str) -> Record:
        """Change the address of a customer; orders keep theirs."""
        customer = self._one("customers", customer_id)
        customer |= _address(street, city, zip_code)
        return self.get_customer(customer_id)

    def change_items(self, order_id: str, item_ids: Sequence[Any], new_item_ids: Sequence[Any]) -> Record:
        """Swap items of a pending order for others of the same products."""
        order = self._with_status(order_id, "pending")
        swaps = self._swaps(order, item_ids, new_item_ids)
        order["items"] = [swaps.get(one, one) for one in order["items"]]
        order["items_changed"] = True
        return self.get_order(order_id)

    def return_items(self, order_id: str, item_ids: Sequence[Any], refund_to: str) -> Record:
        """Take items of a delivered order back."""
        order = self._with_status(order_id, "delivered")
        returned = self._in_order(order, item_ids)
        self._pay_back(order, self._price(returned), refund_to)
        order |= {"status": "return requested", "returned": sorted(returned)}
        return self.get_order(order_id)

    def exchange_items(self, order_id: str, item_ids: Sequence[Any], new_item_ids: Sequence[Any]) -> Record:
        """Exchange items of a delivered order for others of the same products."""
        order = self._with_status(order_id, "delivered")
        order |= {
            "status": "exchange requested",
            "exchanged": dict(sorted(self._swaps(order, item_ids, new_item_ids).items())),
        }
        return self.get_order(order_id)

    def transfer_to_human(self) -> str:
        """Hand the customer over; the conversation ends."""
        self.data["transferred"] = True
        return "A colleague takes over."

    def _all(self, table: str) -> list[Record]:
        return [*self.data[table].values()]

    def _one(self, table: str, key: str) -> Record:
        found = self.data[table].get(key)
        if found is None:
            raise ToolError(f"{table} has no id {key[:40]!r}; ids look like {next(iter(self.data[table]))!r}")
        return found

    def _with_status(self, order_id: str, status: str) -> Record:
        order = self._one("orders", order_id)
        if order["status"] != status:
            raise ToolError(f"the order {order_id} is {order['status']}, and this needs one that is {status}")
        return order

    def _described(self, item_id: str) -> Record:
        item = self.data["items"][item_id]
        return {**item, "product": self.data["products"][item["product_id"]]["name"]}

    def _in_order(self, order: Record, item_ids: Sequence[Any]) -> list[str]:
        if not item_ids or len({*map(str, item_ids)}) != len(item_ids):
            raise ToolError("item_ids names one item or more, each once")
        for one in item_ids:
            if one not in order["items"]:
                raise ToolError(f"the order {order['id']} has no item {str(one)[:40]!r}")
        return [*cast("Sequence[str]", item_ids)]

    def _swaps(self, order: Record, old: Sequence[Any], new: Sequence[Any]) -> dict[str, str]:
        swaps = dict(zip(self._in_order(order, old), new, strict=False))
        if len(old) != len(new):
            raise ToolError("new_item_ids has one item for each of item_ids, in the same order")
        for before, after in swaps.items():
            item = self._one("items", str(after))
            if item["product_id"] != self.data["items"][before]["product_id"] or before == after:
                raise ToolError(f"{after} is not another item of the same product as {before}")
            if not item["available"]:
                raise ToolError(f"{after} is not available")
        return swaps

    def _price(self, item_ids: Sequence[str]) -> int:
        return sum(round(self.data["items"][one]["price"] * 100) for one in item_ids)

    def _pay_back(self, order: Record, cents: int, refund_to: str) -> None:
        if refund_to not in (TO_CARD, TO_GIFT_CARD):
            raise ToolError(f"refund_to is {TO_CARD!r} or {TO_GIFT_CARD!r}")
        by_gift_card = refund_to == TO_GIFT_CARD or order["paid_by"] == TO_GIFT_CARD
        if by_gift_card:
            customer = self.data["customers"][order["customer_id"]]
            customer["gift_card"] = round(customer["gift_card"] * 100 + cents) / 100
        order["refund"] = {"amount": cents / 100, "to": TO_GIFT_CARD if by_gift_card else order["paid_by"]}

    def __deepcopy__(self, memo: dict[int, Any]) -> Shop:
        twin = Shop.__new__(Shop)
        twin.data = copy.deepcopy(self.data, memo)
        return twin


def _address(street: str, city: str, zip_code: str) -> Mapping[str, str]:
    address = {"street": street.strip(), "city": city.strip(), "zip_code": zip_code.strip()}
    if not all(0 < len(part) <= _MAX_LENGTH for part in address.values()):
        raise ToolError(f"street, city and zip_code are texts of 1 to {_MAX_LENGTH} characters")
    return address
