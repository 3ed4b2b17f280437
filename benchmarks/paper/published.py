"""The paper's numbers, by row; value and 95 % interval, None where it prints none."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """A number as printed."""

    value: float
    low: float | None = None
    high: float | None = None


def _rows(experiment: str, table: dict[str, tuple[float, ...]]) -> dict[str, Published]:
    return {f"{experiment} {row}": Published(*numbers) for row, numbers in table.items()}


E1 = _rows(
    "E1",
    {
        "$2.9e-05 reward": (0.793,), "$2.9e-05 cost÷B": (0.98, 0.98, 0.99), "$2.9e-05 median λ": (2.86,),
        "$8.3e-05 reward": (0.813, 0.812, 0.814), "$8.3e-05 cost÷B": (1.00, 1.00, 1.02), "$8.3e-05 median λ": (0.64,),
        "$2.3e-04 reward": (0.859, 0.857, 0.860), "$2.3e-04 cost÷B": (1.00,), "$2.3e-04 median λ": (0.46,),
        "$6.6e-04 reward": (0.898, 0.894, 0.901), "$6.6e-04 cost÷B": (0.98,), "$6.6e-04 median λ": (0.17,),
        "$1.9e-03 reward": (0.917, 0.916, 0.919), "$1.9e-03 cost÷B": (0.91, 0.90, 0.92), "$1.9e-03 median λ": (0.01,),
        "$5.3e-03 reward": (0.924, 0.924, 0.925), "$5.3e-03 cost÷B": (0.89, 0.87, 0.90), "$5.3e-03 median λ": (0.0,),
        "$1.5e-02 reward": (0.929, 0.928, 0.930), "$1.5e-02 cost÷B": (0.74, 0.72, 0.76), "$1.5e-02 median λ": (0.0,),
        "always Llama reward": (0.793,), "always Mistral reward": (0.923,), "always Gemini reward": (0.932,),
        "oracle reward": (0.963,), "random reward": (0.882,),
    },
)  # fmt: skip

E2 = _rows(
    "E2",
    {
        "T cost÷B P1": (1.01, 1.00, 1.01), "T cost÷B P2": (0.95, 0.94, 0.95), "T cost÷B P3": (1.04, 1.01, 1.09),
        "M cost÷B P1": (0.99, 0.98, 1.00), "M cost÷B P2": (0.65, 0.63, 0.67), "M cost÷B P3": (1.00, 1.00, 1.01),
        "L cost÷B P1": (0.96, 0.95, 0.96), "L cost÷B P2": (0.23, 0.22, 0.23), "L cost÷B P3": (0.95, 0.92, 0.97),
        "T reward P1": (0.8621,), "T reward P2": (0.9334,), "T reward P3": (0.8543,),
        "M reward P1": (0.8823,), "M reward P2": (0.9259,), "M reward P3": (0.8914,),
        "L reward P1": (0.9094,), "L reward P2": (0.9276,), "L reward P3": (0.9119,),
        "T lift P2−P1": (0.071, 0.068, 0.074), "M lift P2−P1": (0.044, 0.039, 0.049), "L lift P2−P1": (0.018, 0.015, 0.021),
        "T naive cost÷B P1": (1.07, 1.06, 1.07), "T naive cost÷B P2": (0.89,), "T naive cost÷B P3": (1.09, 1.08, 1.10),
        "M naive cost÷B P1": (0.57,), "M naive cost÷B P2": (0.40,), "M naive cost÷B P3": (0.61, 0.59, 0.62),
        "L naive cost÷B P1": (3.07, 3.00, 3.15), "L naive cost÷B P2": (0.14,), "L naive cost÷B P3": (3.26, 3.18, 3.35),
        "T forgetting cost÷B P1": (2.62, 2.34, 2.97), "T forgetting cost÷B P2": (0.88, 0.87, 0.89),
        "T forgetting cost÷B P3": (5.50, 4.99, 6.05),
        "M forgetting cost÷B P1": (1.50, 1.39, 1.65), "M forgetting cost÷B P2": (0.43, 0.42, 0.45),
        "M forgetting cost÷B P3": (4.13, 3.74, 4.54),
        "L forgetting cost÷B P1": (3.08, 2.80, 3.39), "L forgetting cost÷B P2": (0.17, 0.16, 0.17),
        "L forgetting cost÷B P3": (4.93, 4.61, 5.24),
    },
)  # fmt: skip

E3 = _rows(
    "E3",
    {
        "T reward P1": (0.8632, 0.8615, 0.8648), "T reward P2": (0.8004, 0.7986, 0.8023), "T reward P3": (0.8185, 0.8119, 0.8253),
        "M reward P1": (0.8850, 0.8806, 0.8891), "M reward P2": (0.7947, 0.7928, 0.7964), "M reward P3": (0.8630, 0.8572, 0.8684),
        "L reward P1": (0.9103, 0.9083, 0.9122), "L reward P2": (0.7936, 0.7910, 0.7961), "L reward P3": (0.8977, 0.8940, 0.9012),
        "T cost÷B P1": (1.00, 0.97, 1.03), "T cost÷B P2": (1.00, 0.97, 1.03), "T cost÷B P3": (0.99, 0.96, 1.02),
        "M cost÷B P1": (0.98, 0.95, 1.01), "M cost÷B P2": (0.99, 0.96, 1.02), "M cost÷B P3": (0.97, 0.94, 1.00),
        "L cost÷B P1": (0.95, 0.92, 0.98), "L cost÷B P2": (0.97, 0.94, 1.00), "L cost÷B P3": (0.97, 0.94, 1.00),
        "T P3÷P1": (0.948, 0.940, 0.957), "M P3÷P1": (0.975, 0.967, 0.982), "L P3÷P1": (0.986, 0.982, 0.991),
        "T naive reward P1": (0.8709, 0.8700, 0.8717), "T naive reward P2": (0.8024, 0.8019, 0.8030),
        "T naive reward P3": (0.8551, 0.8541, 0.8560),
        "M naive reward P1": (0.8929, 0.8922, 0.8936), "M naive reward P2": (0.8001, 0.7996, 0.8006),
        "M naive reward P3": (0.8807, 0.8800, 0.8815),
        "L naive reward P1": (0.9280, 0.9274, 0.9286), "L naive reward P2": (0.8453, 0.8440, 0.8466),
        "L naive reward P3": (0.9277, 0.9272, 0.9281),
        "T forgetting reward P1": (0.8837, 0.8807, 0.8862), "T forgetting reward P2": (0.8071, 0.8050, 0.8091),
        "T forgetting reward P3": (0.8257, 0.8203, 0.8314),
        "M forgetting reward P1": (0.8979, 0.8968, 0.8990), "M forgetting reward P2": (0.8085, 0.8064, 0.8105),
        "M forgetting reward P3": (0.8711, 0.8645, 0.8780),
        "L forgetting reward P1": (0.9190, 0.9176, 0.9206), "L forgetting reward P2": (0.8992, 0.8938, 0.9042),
        "L forgetting reward P3": (0.9232, 0.9223, 0.9242),
    },
)  # fmt: skip

E4 = _rows(
    "E4",
    {
        "good cheap T reward": (0.866, 0.864, 0.869), "good cheap T cost e-4": (3.0, 2.99, 3.01),
        "good cheap T Flash %": (8.6, 7.9, 9.4),
        "good cheap M reward": (0.899, 0.897, 0.902), "good cheap M cost e-4": (6.5, 6.49, 6.54),
        "good cheap M Flash %": (12.9, 11.1, 14.8),
        "good cheap L reward": (0.918, 0.916, 0.919), "good cheap L cost e-4": (17.0, 16.7, 17.1),
        "good cheap L Flash %": (15.9, 13.2, 18.5),
        "good cheap U reward": (0.929, 0.928, 0.930), "good cheap U cost e-4": (105, 102, 109),
        "good cheap U Flash %": (13.3, 12.1, 14.5),
        "good dear T reward": (0.832, 0.828, 0.835), "good dear T cost e-4": (3.9, 3.78, 4.09),
        "good dear T Flash %": (3.0, 2.8, 3.1),
        "good dear M reward": (0.868, 0.863, 0.873), "good dear M cost e-4": (7.1, 6.94, 7.23),
        "good dear M Flash %": (4.8, 4.5, 5.1),
        "good dear L reward": (0.904,), "good dear U reward": (0.929,),
        "bad cheap T reward": (0.871,), "bad cheap M reward": (0.895,),
        "bad cheap L reward": (0.913,), "bad cheap U reward": (0.925,),
    },
)  # fmt: skip

C = _rows(
    "C",
    {
        "U regret": (55.0, 54.3, 55.7), "T regret": (161.2, 159.1, 163.1),
        "M regret": (133.9, 129.2, 138.8), "L regret": (83.6, 81.4, 85.9),
        "U reward": (0.933,), "T reward": (0.875,), "M reward": (0.890,), "L reward": (0.918,),
        "U cold regret": (87.0, 77.1, 99.0), "T cold regret": (213.3, 195.8, 232.1), "M cold regret": (147.5, 130.0, 165.3),
        "L cold regret": (114.0, 101.1, 128.3), "U random regret": (146.5, 144.4, 148.8),
    },
)  # fmt: skip

D = _rows(
    "D",
    {
        "full n_eff 10": (65.2, 63.6, 67.3), "full n_eff 100": (61.9, 60.4, 63.5), "full n_eff 1000": (55.5, 54.5, 56.2),
        "swapped n_eff 10": (78.2, 76.3, 81.8), "swapped n_eff 100": (89.9, 89.1, 91.3),
        "swapped n_eff 1000": (106.9, 105.6, 108.0),
        "cold": (78.2, 70.7, 90.1),
    },
)  # fmt: skip

G = _rows(
    "G",
    {
        f"{level:g} P3÷P1 %": (value, value - 1.3, value + 1.3)
        for level, value in zip(
            (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85),
            (89.8, 89.8, 90.2, 90.2, 90.7, 91.6, 93.2, 95.4, 97.5, 98.4, 100.0),
            strict=True,
        )
    },
)

PUBLISHED: dict[str, Published] = {**E1, **E2, **E3, **E4, **C, **D, **G}
