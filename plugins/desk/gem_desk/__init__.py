"""A service desk: customers with wishes, a database, tools that change it, and a policy; ids `desk:<Name>`."""
