from typing import TypedDict
import weft

app = weft.App(policy={"weft": "policy/1", "rules": [{"allow": "host", "names": ["api.flights.example"], "to": ["agent:analyst"]}]})
app.model("fast", url="http://127.0.0.1:8080/v1")

cheapest = app.pipeline("cheapest", [                             # a step like any other: await it, draw it, plan with it
    {"step": "table_filter", "condition": {"field": "stops", "op": "<=", "value": 1}},
    {"step": "table_sort", "field": "price", "order": "asc"},
    {"step": "top_k", "k": 3},
])

class Advice(TypedDict):
    airline: str
    price: float
    why: str

analyst = app.agent("analyst", model="fast", output=Advice, tools=["execute_pipeline", "search_tools", cheapest],
                    prompt="Find flights from ${origin} to ${dest} at api.flights.example/search and advise.", gives=("airline", "price"))

if __name__ == "__main__":
    print(app.run(analyst(origin="NYC", dest="LAX")).output["why"])
