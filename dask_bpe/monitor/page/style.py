"""Colours and sizes of the page.

The colours of data are those of Okabe and Ito, which the colour-blind tell apart. On a canvas nobody can ask whether it
is dark: text there is of a grey that is legible on both.
"""

from __future__ import annotations

from pathlib import Path

ORANGE, GREEN, VERMILION, PINK, SKY, YELLOW = "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#c8b900"
# Of all workers together, and of up to eight each.
ALL = "#2b8cd6"
LINES = (ORANGE, GREEN, PINK, SKY, VERMILION, YELLOW, "#8c6bb1", "#9a9a9a")
CANVAS_TEXT, CANVAS_GRID = "#7a828c", "rgba(128, 136, 146, 0.22)"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

PAGE, PANEL = ((Path(__file__).parent / name).read_text() for name in ("page.css", "panel.css"))

GRID = """
:host { display: grid; grid-template-columns: repeat(12, minmax(0, 1fr)); gap: 12px; width: 100%; }
"""
BARE = ":host { grid-column: span 12; width: 100%; min-width: 0; }"


def card(width: int) -> str:
    """A card that is so many twelfths of the page wide, at least half of it on a tablet, all of it on a telephone."""
    return f"""
    :host {{
      grid-column: span {width}; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
      padding: 14px 16px; box-sizing: border-box; min-width: 0; overflow: hidden; width: 100%;
      align-self: stretch !important; height: auto !important;
    }}
    @media (max-width: 1000px) {{ :host {{ grid-column: span {12 if width > 6 else 6}; }} }}
    @media (max-width: 700px) {{ :host {{ grid-column: span 12; }} }}
    """
