"""An unsharp mask in Halide: `hlorank-tune halide tune_unsharp.py:unsharp`."""

import halide as hl

from hlorank.halide.pipeline import Pipeline

WIDTH, HEIGHT = 1536, 1024
SIGMA = 1.5


def unsharp() -> Pipeline:
    """Adds what a Gaussian blur of the brightness removes to every channel."""
    x, y, c, i = hl.Var("x"), hl.Var("y"), hl.Var("c"), hl.Var("i")
    image = hl.ImageParam(hl.UInt(8), 3, "image")
    image.set_estimates([(0, WIDTH), (0, HEIGHT), (0, 3)])
    kernel, wide, gray = hl.Func("kernel"), hl.Func("wide"), hl.Func("gray")
    blur_y, blur_x = hl.Func("blur_y"), hl.Func("blur_x")
    ratio, sharp = hl.Func("ratio"), hl.Func("sharp")
    tap = hl.RDom([(-3, 7)])
    kernel[i] = hl.exp(hl.f32(-0.5 / SIGMA**2) * i * i) / hl.f32(2.5066 * SIGMA)
    inside = hl.BoundaryConditions.repeat_edge(image)
    wide[x, y, c] = hl.f32(inside[x, y, c])
    red, green, blue = (wide[x, y, channel] for channel in range(3))
    gray[x, y] = hl.f32(0.299) * red + hl.f32(0.587) * green + hl.f32(0.114) * blue
    blur_y[x, y] = hl.sum(kernel[tap] * gray[x, y + tap])
    blur_x[x, y] = hl.sum(kernel[tap] * blur_y[x + tap, y])
    ratio[x, y] = (2 * gray[x, y] - blur_x[x, y]) / hl.max(gray[x, y], hl.f32(1))
    sharp[x, y, c] = hl.u8(hl.clamp(ratio[x, y] * wide[x, y, c], 0, 255))
    return Pipeline(sharp, (WIDTH, HEIGHT, 3), [image])
