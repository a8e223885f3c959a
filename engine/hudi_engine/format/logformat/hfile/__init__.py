"""HFile log blocks, which tables have whose hoodie.logfile.data.block.format is hfile."""
