from pathlib import Path

WANTED = {
    "lib/shop.py": "from tax import rate\n\n\ndef gross(net):\n    return net * (1 + rate())\n\n\ndef prices(nets):\n    return [gross(net) for net in nets]\n",
    "lib/report.py": "import shop\n\nprint(shop.gross(10))  # the gross of one\nbest_price = max(shop.prices([1, 2]))\n",
    "lib/tax.py": "def rate():\n    return 0.25\n",
    "lib/CHANGES.md": "- price() includes the tax\n",
    "lib/docs/usage.md": "Call gross(net) for one gross.\n",
}
found = {str(path.relative_to("/app")): path.read_text() for path in Path("/app/lib").rglob("*") if path.is_file()}
assert found == WANTED
