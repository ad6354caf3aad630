"""What a step costs by formula: operations, bytes and memory; and what GPUs reach by their data sheets."""
