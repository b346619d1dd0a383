"""The plain RAG strategy: the lines nearest to the question, without anything else."""
