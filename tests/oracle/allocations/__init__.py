"""Our allocator against upstream's own code, on problems of a seeded generator (`tests/properties/problems`).

`answers` brings both answers into one form, `differences` compares them, `batches` runs many. Nothing here is part of the product.
"""
