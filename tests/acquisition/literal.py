"""Algorithm 1 of the paper, line by line, for one person: slow, and on purpose without any help
from the package.

Where the paper is silent: a member behind no child is a unit of its own; among several begun units
the one with the largest r(U), then the cheapest head, then schema order; a free head has an
infinite r(U).
"""


def algorithm_1(units, names, costs, budget, start, information):
    """``units``: head -> spouses, in schema order of the heads; ``information(known, feature)`` ->
    I(Y; X_i | x_A).
    """
    position = {name: i for i, name in enumerate(names)}
    acquired = list(start)  # line 1
    cost = sum(costs[position[name]] for name in start)
    blanket = {member for head, spouses in units.items() for member in (head, *spouses)}
    asked = []

    def r(head):
        price = costs[position[head]]
        return (len(units[head]) + 1) / price if price > 0 else float("inf")

    def best(heads):
        return min(heads, key=lambda head: (-r(head), costs[position[head]], position[head]))

    while cost < budget and blanket - set(acquired):  # line 4
        partial, unstarted = [], []
        for head, spouses in units.items():
            inside = [member in acquired for member in (head, *spouses)]
            if any(inside) and not all(inside):
                partial.append(head)
            elif not any(inside):
                unstarted.append(head)
        unit = best(partial) if partial else best(unstarted)  # lines 5 to 12
        if unit not in acquired:  # lines 13 to 14
            following = unit
        else:  # line 16
            following = min(
                (s for s in units[unit] if s not in acquired),
                key=lambda s: (
                    -information(acquired, s) / costs[position[s]],
                    costs[position[s]],
                    position[s],
                ),
            )
        if cost + costs[position[following]] > budget + 1e-9:  # lines 18 to 24
            break
        acquired.append(following)
        asked.append(following)
        cost += costs[position[following]]
    return asked
