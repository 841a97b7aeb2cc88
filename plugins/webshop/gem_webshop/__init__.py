"""WebShop: find a product that an instruction describes, choose its options, and buy it."""
