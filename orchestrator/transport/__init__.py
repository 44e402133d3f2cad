"""Routes to a target. A route opens channels; what is said on them is the collector's business."""
