// What the words of the pages mean, as docs/reference/glossary.md says it; shown where one points at them.

export const TERMS = {
  "÷ budget": "Mean bill ÷ budget, by the worker's account; 1: what was asked for",
  Spend: "Sum of the bills of known requests, in dollars",
  Quality: "Mean of the labels, 0 to 1, over the requests that the dashboard has seen",
  Saved: "Share that is saved against always calling the best model",
  "vs mix": "Saved against the cheapest fixed mix of models of the same quality; > mix: no mix is as good",
  "λ_t": "How much reward one budget's worth of dollars must bring; 0: money is no limit",
  "In flight": "Decided requests whose bill has not come",
  "Req/s": "Decisions a second, over the last five to ten seconds",
  Alarms: "Alerts on drift, caps and budgets out of reach; ⚠: a model is suspected now",
  Share: "Share of the last hundred decisions",
  Answered: "Share of the calls with a bill that were answered, since the dashboard runs; down: gets single trials only",
};
