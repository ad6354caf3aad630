"""The report on roofline and MFU; its section module puts the parts together."""
