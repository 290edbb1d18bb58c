"""CEL's public conformance cases that apply to devices' expressions, as data."""
