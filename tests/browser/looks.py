"""How a view looks: at two widths, light and dark."""
import os

LOOKS = [(1280, 900, False, ""), (1280, 900, True, "-dark"), (400, 860, False, "-narrow"), (400, 860, True, "-narrow-dark")]


def shoot(browser, directory, name):
    for width, height, dark, ending in LOOKS:
        browser.look(width, height, dark)
        browser.run_async("setTimeout(arguments[0], 400)")
        browser.screenshot(os.path.join(directory, f"{name}{ending}.png"))
