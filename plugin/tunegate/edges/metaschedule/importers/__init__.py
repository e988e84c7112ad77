"""What is rewritten before TVM's importer sees a model: one family of operators in each file."""
