"""What a step costs by formula: operations, bytes moved, and memory at each moment. Standard
library only."""
