"""What `import fedrepro` offers, see docs/python.md."""
