"""Which release this is: what people see, and what clients and servers tell each other."""

__version__ = "0.1.0"
