"""From outside to Graph: files, datasets, splits."""
