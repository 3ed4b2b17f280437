"""The numbers of the paper's main text."""

from __future__ import annotations

from benchmarks.paper.printed import Published, rows, spread

E1 = rows(
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

E2 = rows(
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

E3 = rows(
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

E4 = {
    **spread(
        "E4",
        "good cheap {} reward",
        "T M L U",
        "0.866 0.864 0.869",
        "0.899 0.897 0.902",
        "0.918 0.916 0.919",
        "0.929 0.928 0.930",
    ),
    **spread(
        "E4",
        "good cheap {} cost e-4",
        "T M L U",
        "3.0 2.99 3.01",
        "6.5 6.49 6.54",
        "17 16.7 17.1",
        "105 102 109",
    ),
    **spread(
        "E4",
        "good cheap {} Flash %",
        "T M L U",
        "8.6 7.9 9.4",
        "12.9 11.1 14.8",
        "15.9 13.2 18.5",
        "13.3 12.1 14.5",
    ),
    **spread(
        "E4",
        "good cheap {} final %",
        "T M L U",
        "4.4 3.6 5.2",
        "7.8 6.4 9.2",
        "10.2 7.4 13.1",
        "7.3 6.2 8.3",
    ),
    **spread("E4", "good cheap {} seeds adopted %", "T M L U", "100", "100", "100", "100"),
    **spread("E4", "good cheap {} mean step", "T M L U", "142", "121", "121", "121"),
    **spread("E4", "bad cheap {} reward", "T M L U", "0.871", "0.895", "0.913", "0.925"),
    **spread("E4", "bad cheap {} cost e-4", "T M L U", "3.0", "6.5", "17", "120"),
    **spread("E4", "bad cheap {} Flash %", "T M L U", "1.1", "1.1", "1.1", "1.1"),
    **spread("E4", "bad cheap {} final %", "T M L U", "0", "0", "0", "0"),
    **spread("E4", "bad cheap {} seeds adopted %", "T M L U", "0", "0", "0", "0"),
    **spread(
        "E4",
        "good dear {} reward",
        "T M L U",
        "0.832 0.828 0.835",
        "0.868 0.863 0.873",
        "0.904",
        "0.929",
    ),
    **spread(
        "E4", "good dear {} cost e-4", "T M L U", "3.9 3.78 4.09", "7.1 6.94 7.23", "18", "115"
    ),
    **spread("E4", "good dear {} Flash %", "T M L U", "3.0 2.8 3.1", "4.8 4.5 5.1", "9.4", "13.3"),
    **spread("E4", "good dear {} final %", "T M L U", "1.2 0.8 1.5", "2.5 1.9 3.2", "6.1", "7.3"),
    **spread("E4", "good dear {} seeds adopted %", "T M L U", "0", "0", "100", "100"),
    **spread("E4", "good dear {} mean step", "L U", "150", "121"),
}

_SHARES = {"2.9e-05": "100 0 0", "8.3e-05": "87 13 0", "2.3e-04": "56 44 0", "6.6e-04": "24 74 2", "1.9e-03": "7 84 9",
           "5.3e-03": "3 68 28", "1.5e-02": "3 27 69"}  # fmt: skip
E1 |= {
    row: number
    for budget, shares in _SHARES.items()
    for row, number in spread(
        "E1", f"${budget} " + "{} %", "Llama Mistral Gemini", *shares.split()
    ).items()
}

_PHASES = "P1 P2 P3"
E2 |= {
    **spread("E2", "T mean λ {}", _PHASES, "0.44", "0.08", "0.59"),
    **spread("E2", "M mean λ {}", _PHASES, "0.34", "0.01", "0.30"),
    **spread("E2", "L mean λ {}", _PHASES, "0.09", "0", "0.10"),
    **spread("E2", "T Gemini % {}", _PHASES, "0", "81", "0"),
    **spread("E2", "M Gemini % {}", _PHASES, "2", "28", "2"),
    **spread("E2", "L Gemini % {}", _PHASES, "9", "30", "8"),
    **spread("E2", "U reward {}", "P1", "0.9248"),
    **spread("E2", "U cost e-2 {}", "P1", "1.2"),
    **spread(
        "E2",
        "T recalibrated cost÷B {}",
        _PHASES,
        "1.07 1.06 1.07",
        "0.99 0.99 1.00",
        "1.44 1.40 1.47",
    ),
    **spread("E2", "M recalibrated cost÷B {}", _PHASES, "0.57", "0.44", "2.14 2.08 2.20"),
    **spread("E2", "L recalibrated cost÷B {}", _PHASES, "3.07 3.00 3.15", "0.17", "0.94 0.90 0.99"),
}

E3 |= {
    **spread("E3", "T Mistral % {}", _PHASES, "54", "33", "26"),
    **spread("E3", "M Mistral % {}", _PHASES, "71", "50", "54"),
    **spread("E3", "L Mistral % {}", _PHASES, "84", "69", "69"),
    **spread("E3", "T naive cost÷B {}", _PHASES, "1.06", "0.89", "0.91"),
    **spread("E3", "M naive cost÷B {}", _PHASES, "0.57", "0.56", "1.00"),
    **spread("E3", "L naive cost÷B {}", _PHASES, "3.03", "4.23", "5.15"),
    **spread("E3", "T forgetting cost÷B {}", _PHASES, "2.56", "2.80", "1.84"),
    **spread("E3", "M forgetting cost÷B {}", _PHASES, "1.48", "2.07", "2.21"),
    **spread("E3", "L forgetting cost÷B {}", _PHASES, "3.04", "6.19", "6.92"),
    **spread("E3", "T forgetting Mistral % {}", _PHASES, "65", "40", "27"),
    **spread("E3", "M forgetting Mistral % {}", _PHASES, "72", "54", "50"),
    **spread("E3", "L forgetting Mistral % {}", _PHASES, "63", "19", "13"),
    **spread("E3", "U reward {}", _PHASES, "0.9245", "0.9263", "0.9251"),
    **spread("E3", "{} trough after", "T M L", "192", "52", "72"),
}

MAIN: dict[str, Published] = {**E1, **E2, **E3, **E4}
