"""A run's figures in the formats of others: CSV, Parquet, Markdown, OpenTelemetry."""
