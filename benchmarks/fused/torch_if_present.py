"""PyTorch, where it is installed: the tables of programs are read without it, and only their functions need it."""

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = F = None

__all__ = ["F", "torch"]
