"""Pictures, one kind a file. matplotlib is imported when one is drawn; equal content gives equal bytes."""
