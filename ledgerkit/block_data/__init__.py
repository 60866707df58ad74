"""Reading whole blocks from the block documents: single ones, and archives of ten."""
