"""The numbers of the paper's appendices."""

from __future__ import annotations

from paper.printed import Published, rows, spread

A = {
    **rows(
        "A",
        {
            "warm knee α": (0.01,),
            "warm knee γ": (0.997,),
            "warm knee n_eff": (1163.9,),
            "warm knee area": (0.928,),
            "warm knee failing reward": (0.7312, 0.7231, 0.7393),
            "cold knee α": (0.05,),
            "cold knee γ": (0.997,),
            "cold knee area": (0.923,),
            "cold knee failing reward": (0.7287,),
            "warm best area α": (0.01,),
            "warm best area γ": (1.0,),
            "warm best area": (0.928,),
            "cold best area α": (0.1,),
            "cold best area γ": (1.0,),
            "cold best area": (0.925,),
            "warm val area": (0.928,),
            "cold val area": (0.923,),
            "warm test area": (0.9221, 0.9216, 0.9226),
            "cold test area": (0.9200, 0.9191, 0.9208),
            "fixed models, test area": (0.9253,),
            "warm reward, Llama at .50": (0.8470, 0.8140, 0.8800),
            "warm reward, Mistral at .50": (0.7312, 0.7231, 0.7393),
            "warm reward, Gemini at .50": (0.8916, 0.8852, 0.8980),
            "cold reward, Mistral at .50": (0.7287,),
            "warm knee chosen %": (50.9,),
            "warm knee chosen % within one step of γ": (91.0,),
            "warm knee settings ever chosen": (6,),
        },
    ),
    **spread("A", "T_adapt {}, Mistral at .75 α", "250 500 1000", "0.01", "0.01", "0.01"),
    **spread("A", "T_adapt {}, Mistral at .75 γ", "250 500 1000", "0.996", "0.997", "0.994"),
    **spread("A", "T_adapt {}, Mistral at .75 n_eff", "250 500 1000", "431", "1164", "68298"),
    **spread("A", "T_adapt {}, Mistral at .75 area", "250 500 1000", "0.9255", "0.9277", "0.9267"),
    **spread(
        "A",
        "T_adapt {}, Mistral at .75 failing reward",
        "250 500 1000",
        "0.7934",
        "0.7933",
        "0.7945",
    ),
}

B = {
    **rows(
        "B",
        {
            "K 3 prompts": (1766,),
            "K 3 order kept %": (100.0, 99.8, 100.0),
            "K 4 prompts": (1766,),
            "K 4 order kept %": (79.7, 77.7, 81.5),
            "K 4 Mistral < Flash %": (79.7, 77.7, 81.5),
            "K 4 Flash coefficient of variation": (1.56,),
            "K 3 Llama–Mistral Cohen d": (4.39,),
            "K 3 Mistral–Gemini Cohen d": (5.92,),
            "K 4 Mistral–Flash Cohen d": (0.68,),
            "K 3 least ρ of words and cost": (0.12,),
            "K 3 most ρ of words and cost": (0.27,),
            "K 3 least ρ of costs of two models": (0.56,),
            "K 3 most ρ of costs of two models": (0.68,),
        },
    ),
    **spread("B", "K 3 {} sd of log cost, % of range", "least most", "8", "11"),
    **spread("B", "K 4 {} c̃", "Llama Mistral Flash Gemini", "0", "0.333", "0.382", "0.583"),
}

C = {
    **spread(
        "C",
        "{} regret",
        "U T M L",
        "55.0 54.3 55.7",
        "161.2 159.1 163.1",
        "133.9 129.2 138.8",
        "83.6 81.4 85.9",
    ),
    **spread(
        "C",
        "{} cold regret",
        "U T M L",
        "87.0 77.1 99.0",
        "213.3 195.8 232.1",
        "147.5 130.0 165.3",
        "114.0 101.1 128.3",
    ),
    **spread("C", "{} R@200", "U T M L", "6.2", "19.5", "14.7", "8.6"),
    **spread("C", "{} cold R@200", "U T M L", "16.2", "29.2", "23.5", "22.2"),
    **spread("C", "{} reward", "U T M L", "0.933", "0.875", "0.890", "0.918"),
    **spread("C", "{} cold reward", "U T M L", "0.916", "0.846", "0.882", "0.901"),
    **spread("C", "{} sd of regret", "U T M L", "1.6", "4.6", "11.0", "5.1"),
    **spread("C", "{} cold sd of regret", "U T M L", "24.8", "41.8", "40.5", "30.8"),
    **spread(
        "C",
        "{} saved regret",
        "U T M L",
        "32.0 19.8 48.4",
        "52.2 29.6 76.9",
        "13.7 -10.9 38.5",
        "30.4 13.9 49.2",
    ),
    **spread("C", "{} saved R@200", "U T M L", "10.0", "9.7", "8.8", "13.6"),
    **spread("C", "{} cold seeds over 2 × median %", "U T M L", "10", "0", "0", "0"),
    **rows(
        "C",
        {
            "U random regret": (146.5, 144.4, 148.8),
            "U random R@200": (16.0,),
            "U random reward": (0.883,),
        },
    ),
}

_FULL = ("65.2 63.6 67.3", "61.9 60.4 63.5", "55.5 54.5 56.2")
_RANDOM = ("64.2 61.9 65.4", "61.2 59.4 62.1", "55.1 54.4 55.9")
_MMLU = ("65.4 63.9 66.4", "60.1 58.1 60.5", "58.3 57.5 58.7")
_GSM8K = ("66.7 65.7 68.0", "63.9 63.0 65.0", "60.9 59.4 62.9")
_SWAPPED = ("78.2 76.3 81.8", "89.9 89.1 91.3", "106.9 105.6 108.0")
_N_EFF = "10 100 1000"
D = {
    **spread("D", "full n_eff {} regret", _N_EFF, *_FULL),
    **spread("D", "random n_eff {} regret", _N_EFF, *_RANDOM),
    **spread("D", "MMLU n_eff {} regret", _N_EFF, *_MMLU),
    **spread("D", "GSM8K n_eff {} regret", _N_EFF, *_GSM8K),
    **spread("D", "swapped n_eff {} regret", _N_EFF, *_SWAPPED),
    **spread("D", "full n_eff {} seeds won %", _N_EFF, "85", "95", "100"),
    **spread("D", "random n_eff {} seeds won %", _N_EFF, "90", "100", "100"),
    **spread("D", "MMLU n_eff {} seeds won %", _N_EFF, "90", "100", "100"),
    **spread("D", "GSM8K n_eff {} seeds won %", _N_EFF, "90", "90", "100"),
    **spread("D", "swapped n_eff {} seeds won %", _N_EFF, "60", "30", "15"),
    **rows(
        "D",
        {
            "cold regret": (78.2, 70.7, 90.1),
            "cold α .01 regret": (73.4,),
            "cold α .01 mean regret": (117.7,),
        },
    ),
}

_MODELS = "Llama Mistral Gemini"
_JUDGES = "R1 GPT Claude"
E = {
    **spread("E", "R1 mean of {}", _MODELS, "0.798", "0.923", "0.935"),
    **spread("E", "GPT mean of {}", _MODELS, "0.857", "0.952", "0.964"),
    **spread("E", "Claude mean of {}", _MODELS, "0.779", "0.915", "0.928"),
    **spread("E", "oracle of R1 scored by {}", _JUDGES, "0.966", "0.955", "0.923"),
    **spread("E", "oracle of GPT scored by {}", _JUDGES, "0.926", "0.979", "0.915"),
    **spread("E", "oracle of Claude scored by {}", _JUDGES, "0.926", "0.953", "0.948"),
    **spread("E", "{} oracle − best model", _JUDGES, "0.031", "0.016", "0.020"),
    **spread("E", "{} against R1 ρ", "GPT Claude", "0.658", "0.633"),
    **spread("E", "{} against R1 τ", "GPT Claude", "0.547", "0.528"),
    **spread("E", "{} against R1 mean distance", "GPT Claude", "0.074", "0.075"),
    **spread("E", "{} against R1 bias", "GPT Claude", "0.039", "-0.012"),
    **spread("E", "{} against R1 lower limit", "GPT Claude", "-0.23", "-0.36"),
    **spread("E", "{} against R1 upper limit", "GPT Claude", "0.37", "0.24"),
    **spread("E", "{} against R1 same best model %", "GPT Claude", "51.3", "47.9"),
    **spread(
        "E",
        "Kendall W, gap of R1 from {}",
        "0 0.05 0.1 0.2 0.3",
        "0.17",
        "0.29",
        "0.43",
        "0.57",
        "0.71",
    ),
    **spread("E", "Kendall W, {}", "all", "0.42"),
    **spread(
        "E",
        "R1 {} cold regret",
        "U T M L",
        "51.0 47.7 54.4",
        "127.7 118.3 137.4",
        "90.6 85.0 96.2",
        "65.5 63.6 67.7",
    ),
    **spread(
        "E",
        "GPT {} cold regret",
        "U T M L",
        "32.8 29.7 36.1",
        "113.1 102.9 123.3",
        "76.7 68.0 86.3",
        "45.1 42.5 48.1",
    ),
    **spread(
        "E",
        "Claude {} cold regret",
        "U T M L",
        "37.6 34.4 41.1",
        "117.0 109.8 125.0",
        "77.0 71.9 81.9",
        "52.6 51.5 53.6",
    ),
    **spread(
        "E", "{} random regret", _JUDGES, "106.2 104.6 107.8", "71.9 70.9 72.9", "97.6 96.3 98.9"
    ),
    **spread("E", "R1 {} saved %", "U T", "52 49 55", "-20 -30 -11"),
    **spread("E", "GPT {} saved %", "U T", "54 49 59", "-57 -71 -43"),
    **spread("E", "Claude {} saved %", "U T", "61 58 65", "-20 -27 -13"),
}

_LATENCY = {
    "router": (22.5, 26.5, 20.4, 23.0, 22199, 163.0, 234.5, 456.9, 539.0, 1582),
    "bare Sherman–Morrison": (5.8, 6.2, 8.1, 8.4, 70459, 105.2, 188.1, 320.0, 970.8, 1608),
    "inverse per reward": (7.2, 8.0, 18.8, 19.3, 39687, 138.1, 230.0, 1679, 2255, 507),
    "inverse per decision": (50.8, 57.3, 4.0, 5.0, 17203, 4569, 4959, 132.1, 785.8, 203),
}
_PARTS = ("route p50 µs", "route p95 µs", "update p50 µs", "update p95 µs", "cycles/s")
F = {
    **{
        f"F d {(26, 385)[at // 5]} {row} {_PARTS[at % 5]}": Published(value)
        for row, values in _LATENCY.items()
        for at, value in enumerate(values)
    },
    **spread(
        "F", "end to end {} p50 ms", "embed project route total", "8.8", "0.11", "0.056", "9.0"
    ),
    **spread(
        "F", "end to end {} p95 ms", "embed project route total", "9.3", "0.15", "0.072", "9.4"
    ),
}

_LEVELS = "0.05 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.75 0.8 0.85"
_SHORT = (89.8, 89.8, 90.2, 90.2, 90.7, 91.6, 93.2, 95.4, 97.5, 98.4, 100.0)
_LONG = (92.7, 93.6, 93.9, 93.4, 94.5, 95.2, 96.7, 98.3, 99.5, 99.9, 100.8)
G = {
    **spread("G", "{} P3 of 608 ÷P1 %", _LEVELS, *map(str, _SHORT)),
    **spread("G", "{} P3 of 1216 ÷P1 %", _LEVELS, *map(str, _LONG)),
}

APPENDIX: dict[str, Published] = {**A, **B, **C, **D, **E, **F, **G}
