"""Writers: sections in, text out. They know `fedrepro.exhibits.write.blocks` and nothing of exhibits."""
