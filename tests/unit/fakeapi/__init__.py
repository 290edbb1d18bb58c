"""What the contract cannot tell of the embedded API server: stand-ins, faults, history, printing."""
