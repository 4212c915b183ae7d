"""Writers turn blocks into text. They depend on `fedrepro.exhibits.write.blocks` alone, not on exhibits."""
