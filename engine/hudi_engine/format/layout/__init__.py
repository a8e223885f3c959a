"""The order of rows within files: by columns, or along a curve through them."""
