"""Learning curves of a comparison: what is drawn where."""

import xml.etree.ElementTree as ElementTree

from benchmarks import learning_curves

SVG = "{http://www.w3.org/2000/svg}"


def test_lower_losses_are_drawn_lower_and_later_ones_to_the_right():
    made = learning_curves.geometry({"slow": [4.0, 3.0, 2.0], "fast": [3.0, 1.0]})
    slow, fast = (line["points"] for line in made["lines"])
    assert [point["x"] for point in slow] == [
        made["left"],
        (made["left"] + made["right"]) / 2,
        made["right"],
    ]
    assert slow[0]["x"] == fast[0]["x"] and slow[1]["y"] == fast[0]["y"]
    assert slow[0]["y"] == made["top"] and fast[1]["y"] == made["bottom"]
    assert [tick["label"] for tick in made["x_ticks"]] == [1, 2, 3]
    assert {line["colour"] for line in made["lines"]} == {0, 1}


def test_one_epoch_is_a_point():
    made = learning_curves.geometry({"any": [4.0]})
    assert len(made["lines"][0]["points"]) == 1


def test_a_picture(tmp_path):
    names = [f"variant {number}" for number in range(15)]
    learning_curves.write(tmp_path / "any.svg", {name: [3.0, 2.0 + len(name)] for name in names})
    drawn = ElementTree.parse(tmp_path / "any.svg").getroot()
    assert len(drawn.findall(f"{SVG}polyline")) == 15 and len(drawn.findall(f"{SVG}circle")) == 30
    texts = [text.text for text in drawn.findall(f"{SVG}text")]
    assert set(names) <= set(texts)
    # No two lines look alike, and the legend is within the picture.
    looks = {
        (line.get("stroke"), line.get("stroke-dasharray"))
        for line in drawn.findall(f"{SVG}polyline")
    }
    assert len(looks) == 15
    assert all(
        float(text.get("y")) <= float(drawn.get("viewBox").split()[3])
        for text in drawn.findall(f"{SVG}text")
    )


def test_nothing_is_drawn_of_nothing(tmp_path):
    learning_curves.write(tmp_path / "any.svg", {"without evaluations": []})
    assert not list(tmp_path.iterdir())
