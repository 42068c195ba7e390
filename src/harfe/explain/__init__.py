"""What a fitted function says about its inputs, as plain data."""
