# The portfolio and the budget of the example. Prices are dollars per million tokens.
pbstream models add openai/nano --input-price 0.05 --output-price 0.2 --dimensions 5
pbstream models add openai/small --input-price 0.1 --output-price 0.4
pbstream models add openai/medium --input-price 0.4 --output-price 1.6
pbstream models add openai/verbose --input-price 0.4 --output-price 1.6
pbstream models add openai/large --input-price 2.5 --output-price 10
pbstream budget set 0.0008
