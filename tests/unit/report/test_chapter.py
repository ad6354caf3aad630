"""What a chapter's words are, and which of its findings stay where they are too many."""

from stepscope.report.kit.chapter import Chapter, Part, fitted
from stepscope.report.kit.finding import Finding, Number


def said(words: str) -> Finding:
    return Finding("question", words, {"n": Number(3.0)})


LONG = Chapter(
    "time",
    "Two words",
    (said("It takes {n} ms."),),  # 4
    (
        Part("Why is that?", (said("One two three four."), said("Five six."))),  # 3 + 4 + 2
        Part("And then?", (said("Seven eight."),)),  # 2 + 2
    ),
    ("timing",),
)


def test_words_are_those_of_title_questions_and_sentences():
    assert LONG.words == 2 + 4 + 9 + 4


def test_the_last_findings_go_first_and_their_questions_with_them():
    assert fitted(LONG, 19) == LONG
    shorter = fitted(LONG, 18)
    assert [part.question for part in shorter.parts] == ["Why is that?"] and shorter.words == 15
    assert [each.text for each in fitted(LONG, 14).findings] == ["It takes 3.00 ms.", "One two three four."]


def test_a_question_without_an_answer_is_not_asked():
    silent = Chapter("time", "Time", (), (Part("Why?", ()), Part("How?", (said("So."),))), ())
    assert [part.question for part in fitted(silent).parts] == ["How?"]
