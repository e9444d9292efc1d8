"""Finds faster layouts of a convolutional network; needs a server at 127.0.0.1:7070."""

from itertools import pairwise

import jax

from hlorank_tune import search
from hlorank_tune.xla import LayoutCompiler, Program

ORDER = ("NCHW", "OIHW", "NCHW")


def convnet(image, kernels, head):
    """Convolutions, and one dense layer."""
    for kernel in kernels:
        image = jax.lax.conv_general_dilated(image, kernel, (2, 2), "SAME", dimension_numbers=ORDER)
        image = jax.nn.relu(image)
    return image.mean((2, 3)) @ head


draw = jax.random.key(0)
image = jax.random.normal(draw, (16, 3, 96, 96))
kernels = [jax.random.normal(draw, (o, i, 3, 3)) / 9 for i, o in pairwise((3, 32, 64, 128))]
program = Program.from_function(convnet, image, kernels, jax.random.normal(draw, (128, 10)))

if __name__ == "__main__":
    print(search(LayoutCompiler(program), "127.0.0.1:7070", "tuned/convnet"))
