"""Writers turn blocks into text. They know `fedrepro.exhibits.write.blocks` and nothing of exhibits."""
