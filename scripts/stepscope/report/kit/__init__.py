"""What every section is made with: blocks, tables, comparisons, findings, and the back ends that write them."""
