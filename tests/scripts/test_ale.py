"""Ale: every form and function does what the language says, and what does not fit says why."""

import subprocess
import sys
from typing import Any

import pytest

from weft.errors import LimitExceeded
from weft.scripts import BadScript, ScriptFailed, compile_script


def value(source: str, **given: Any) -> Any:
    return compile_script("ale", source, list(given)).evaluate(given)


def check(source: str, result: Any) -> None:
    got = value(source)
    assert got == result
    assert type(got) is type(result)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("42", 42),
        ("-7", -7),
        ("+7", 7),
        ("0x1F", 31),
        ("-0b101", -5),
        ("0o17", 15),
        ("2.50", 2.5),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("6/3", 2),
        ("1/4", 0.25),
        ("true", True),
        ("#f", False),
        ("null", None),
        ("()", None),
        (":name", "name"),
        (r'"a\"b\\c\n\t\sd\q"', 'a"b\\c\n\t dq'),
        ('"two\nlines"', "two\nlines"),
        ("[1 [2] []]", [1, [2], []]),
        ('{:a 1 "b" {:c null}}', {"a": 1, "b": {"c": None}}),
        ("'(1 2 (3 :k))", [1, 2, [3, "k"]]),
        ("(quote [1 {:a 2}])", [1, {"a": 2}]),
        ("; first\n1 ; last", 1),
        ("#| a #| nested |# comment |# 2", 2),
        ("1 2 3", 3),
    ],
)
def test_literals(source: str, result: Any) -> None:
    check(source, result)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("(+)", 0),
        ("(+ 1 2 3)", 6),
        ("(+ 1 0.5)", 1.5),
        ("(*)", 1),
        ("(* 2 3 4)", 24),
        ("(- 5)", -5),
        ("(- 10 1 2)", 7),
        ("(/ 4)", 0.25),
        ("(/ 10 2)", 5),
        ("(/ 10 4)", 2.5),
        ("(* 3 (/ 1 3))", 1),
        ("(+ (/ 1 3) (/ 2 3))", 1),
        ("(/ 1.0 4)", 0.25),
        ("(mod 7 3)", 1),
        ("(mod -7 3)", 2),
        ("(inc 1)", 2),
        ("(dec 1.5)", 0.5),
        ("(* 9223372036854775807 2)", "18446744073709551614"),
        ("(- (* 9223372036854775807 2) 9223372036854775807)", 9223372036854775807),
    ],
)
def test_arithmetic(source: str, result: Any) -> None:
    check(source, result)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("(> 3 2 1)", True),
        ("(> 3 2 2)", False),
        ("(>= 3 3 2)", True),
        ("(< 1 2 3)", True),
        ("(<= 1 1 2)", True),
        ("(= 1 1.0 1)", True),
        ("(= 0.5 1/2)", True),
        ("(!= 1 2)", True),
        ("(!= 1 1.0)", False),
        ("(!= 1 1 2)", True),
        ("(!= 1 2 1)", True),
        ("(!= 1 1 1)", False),
        ("(eq '(1 2) [1 2])", False),
        ("(eq '(1 2) (list 1 2))", True),
        ("(eq (list) null)", True),
        ("(eq (cons :a 1) (first {:a 1}))", True),
        ("(= 1)", True),
        ("(eq 5 5.0)", False),
        ("(eq 5 5 5)", True),
        ("(eq 5 5 6)", False),
        ("(eq true 1)", False),
        ('(eq "a" :a)', False),
        ('(eq [1 {:a "x"}] [1 {:a "x"}])', True),
        ('(eq [1 {:a "x"}] [1 {:a "y"}])', False),
        ("(eq {:a 1} {:b 1})", False),
        ("(eq [1] [1 2])", False),
        ("(eq null null)", True),
        ("(!eq 1 2)", True),
        ("(not false)", True),
        ("(not null)", False),
        ("(not 0)", False),
    ],
)
def test_comparison(source: str, result: Any) -> None:
    check(source, result)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("(if true 1 2)", 1),
        ("(if false 1 2)", 2),
        ("(if null 1 2)", 1),
        ("(if 0 1 2)", 1),
        ("(if false 1)", None),
        ("(when true 1 2)", 2),
        ("(when false 1)", None),
        ("(unless false 1 2)", 2),
        ("(unless 0 1)", None),
        ("(cond [false 1] [(> 2 1) 2] [:else 3])", 2),
        ("(cond (false 1) (else 3))", 3),
        ("(cond [false 1])", None),
        ("(cond)", None),
        ('(case "b" ["a" 1] [("b" "c") 2] [:else 3])', 2),
        ('(case "z" ["a" 1] [:else 3])', 3),
        ('(case "else" ["else" 1] [:else 3])', 1),
        ("(and)", True),
        ("(and 1 2)", 2),
        ("(and 1 false (raise 1))", False),
        ("(and null 2)", 2),
        ("(or)", False),
        ("(or false 2 (raise 1))", 2),
        ("(or false false)", False),
        ("(or null 1)", None),
        ("(begin 1 2)", 2),
        ("(begin)", None),
    ],
)
def test_choices(source: str, result: Any) -> None:
    check(source, result)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("(let ([a 1] [b 2]) (+ a b))", 3),
        ("(let* ([a 1] [b (+ a 1)]) (* a b))", 2),
        ("(let* [a 5] (inc a) (dec a))", 4),
        ("(let* ((a 1) (b 2)) b)", 2),
        ("(let ([a 1]) (let ([a 2] [b a]) [a b]))", [2, 1]),
        ("(let* ([a 1] [a (inc a)]) a)", 2),
        ("(let* () 1)", 1),
        ("((lambda (a b) (- a b)) 5 3)", 2),
        ("((lambda () 1))", 1),
        ("((lambda [a] a) 7)", 7),
        ("((lambda (a . rest) [a rest]) 1 2 3)", [1, [2, 3]]),
        ("((lambda (a . rest) rest) 1)", []),
        ("(let* ([n 10] [add (lambda (x) (+ x n))] [n 20]) (add 1))", 11),
        ("(((lambda (a) (lambda (b) (lambda (c) [a b c]))) 1) 2)", None),
        ("((((lambda (a) (lambda (b) (lambda (c) [a b c]))) 1) 2) 3)", [1, 2, 3]),
        ("(map (lambda (f) (f)) (map (lambda (i) (let ([j (* i 10)]) (lambda () j))) [1 2 3]))", [10, 20, 30]),
        ("(let-rec ([f (lambda (n) (if (<= n 1) 1 (* n (f (dec n)))))]) (f 10))", 3628800),
        (
            "(let-rec ([a (lambda (n) (if (= n 0) 1 (b (dec n))))] [b (lambda (n) (if (= n 0) 0 (a (dec n))))]) (a 9))",
            0,
        ),
        ("(let ([list 5]) list)", 5),
    ],
)
def test_names_and_functions(source: str, result: Any) -> None:
    if result is None:
        with pytest.raises(ScriptFailed, match="function"):
            value(source)
    else:
        check(source, result)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("(:a {:a 1})", 1),
        ("(:b {:a 1})", None),
        ("(:b {:a 1} 7)", 7),
        ("({:a 1} :a)", 1),
        ('({:a 1} "a")', 1),
        ("({:a 1} :b 2)", 2),
        ("([5 6 7] 1)", [6, 7]),
        ("([5 6 7] 1 2)", [6]),
        ("([5 6] 2)", []),
        ("('(5 6 7) 1)", [6, 7]),
        ("('(5 6 7) 1 1)", None),
        ('("größe" 2)', "öße"),
        ('("größe" 1 3)', "rö"),
        ("(9 [5 6])", None),
        ("(9 [5 6] :no)", "no"),
        ("(0 [5 6])", 5),
        ("(get {:a 1} :a)", 1),
        ("(get {:a 1} :b 9)", 9),
        ("(get [5 6] 0)", 5),
        ("(object :a 1 :b 2)", {"a": 1, "b": 2}),
        ("(assoc {:a 1} :b 2 :a 3)", {"a": 3, "b": 2}),
        ("(dissoc {:a 1 :b 2} :a :c)", {"b": 2}),
        ("(contains? {:a null} :a)", True),
        ("(contains? {:a 1} :b)", False),
        ("(!contains? [1 2] 5)", True),
        ("(assoc {:a 1} (cons :b 2))", {"a": 1, "b": 2}),
        ("(assoc {:a 1} (first {:b 2}))", {"a": 1, "b": 2}),
        ("(seq->object [:a 1] '(:b 2))", {"a": 1, "b": 2}),
        ("(map rest {:a 1 :b 2})", [1, 2]),
        ("(map first {:a 1 :b 2})", ["a", "b"]),
        ("(let* ([o {:a 1}] [p (assoc o :a 2)]) [(:a o) (:a p)])", [1, 2]),
    ],
)
def test_objects(source: str, result: Any) -> None:
    check(source, result)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("(list 1 2)", [1, 2]),
        ("(list)", None),
        ("(rest '(1 2))", [2]),
        ("(rest '(1))", None),
        ("(rest null)", None),
        ('(rest "abc")', "bc"),
        ('(rest "")', ""),
        ('(reverse "abc")', "cba"),
        ("(reverse '(1 2))", [2, 1]),
        ("(reverse null)", None),
        ('(nth "abc" 1)', "b"),
        ('(last "abc")', "c"),
        ("(conj '(1 2) 3 4)", [4, 3, 1, 2]),
        ("(conj null 1 2)", [2, 1]),
        ("(conj (map inc [1 2]) 9)", [9, 2, 3]),
        ("(cons 0 '(1))", [0, 1]),
        ("(cons 0 null)", [0]),
        ("(vector? (rest [1 2]))", True),
        ("(vector? (rest '(1 2)))", False),
        ("(list? [1])", False),
        ("(vector? (map inc [1]))", False),
        ("(range -3)", [0, -1, -2]),
        ("(seq->vector [1] '(2) null)", [1, 2]),
        ("(seq->list [])", None),
        ("(eq [2 3] (seq->vector (map inc [1 2])))", True),
        ("(vector)", []),
        ("(length [1 2])", 2),
        ('(length "größe")', 5),
        ("(length {:a 1})", 1),
        ("(length null)", 0),
        ("(first [1 2])", 1),
        ("(first [])", None),
        ("(first null)", None),
        ('(first "ab")', "a"),
        ("(rest [1 2 3])", [2, 3]),
        ("(rest [])", []),
        ("(last [1 2])", 2),
        ("(last [])", None),
        ("(nth [5 6] 1)", 6),
        ("(nth [5 6] 7 :no)", "no"),
        ("(take 2 [1 2 3])", [1, 2]),
        ("(take -1 [1])", []),
        ("(drop 2 [1 2 3])", [3]),
        ("(concat [1] null [2 3] '(4))", [1, 2, 3, 4]),
        ("(conj [1] 2 3)", [1, 2, 3]),
        ("(cons 0 [1])", [0, 1]),
        ("(reverse [1 2 3])", [3, 2, 1]),
        ("(range 3)", [0, 1, 2]),
        ("(range 1 4)", [1, 2, 3]),
        ("(range 9 0 -3)", [9, 6, 3]),
        ("(range 3 1)", []),
        ("(map inc [1 2])", [2, 3]),
        ("(map + [1 2] [10 20 30])", [11, 22]),
        ("(map :a [{:a 1} {:b 2}])", [1, None]),
        ("(map {:a 1} [:a :b])", [1, None]),
        ('(map (lambda (c) (str c c)) "ab")', ["aa", "bb"]),
        ("(filter (lambda (x) (> x 1)) [1 2 3])", [2, 3]),
        ("(filter !null? [1 null 2])", [1, 2]),
        ("(reduce + [1 2 3])", 6),
        ("(reduce + 10 [1 2 3])", 16),
        ("(reduce + [])", 0),
        ("(reduce conj [] [1 2])", [1, 2]),
        ("(fold-left - 10 [1 2])", 7),
        ("(apply + 1 [2 3])", 6),
        ("(apply max? [])", None),
        ("(seq->vector (map inc [1]))", [2]),
        ('(seq->list "ab")', ["a", "b"]),
    ],
)
def test_sequences(source: str, result: Any) -> None:
    if "max?" in source:
        with pytest.raises(BadScript):
            value(source)
    else:
        check(source, result)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ('(str "a" 1 2.0 null "b")', "a12.0b"),
        ("(str)", ""),
        ("(str true false)", "#t#f"),
        ("(str :key 1/3)", ":key1/3"),
        ('(str ["a" null :k {:x "q\\"" :y []}])', '["a" () :k {:x "q\\"" :y []}]'),
        ("(str '(1 (2) :k))", "(1 (2) :k)"),
        ("(str (cons :a 1) (list))", "(:a . 1)"),
        (r'(str ["\t\r\b\f\n"])', r'["\t\r\b\f\n"]'),
        ("(str inc (lambda () 1))", "functionfunction"),
        ("(-> 5 (- 1) (* 2) inc)", 9),
        ("(->> [1 2 3] (map inc) (filter even?) (reduce +))", 6),
        ("(-> {:a {:b 7}} :a :b)", 7),
        ('(try (raise "no " 1) (catch [e] (str "caught " e)))', "caught no 1"),
        ("(try 5 (catch [e] 6))", 5),
        ("(try (/ 1 0) (catch [e number?] 1) (catch [e string?] e))", "division by zero"),
        ("(map (lambda (x) (try (/ 6 x) (catch [e] null))) [1 0 2])", [6, None, 3]),
    ],
)
def test_text_threading_and_errors(source: str, result: Any) -> None:
    check(source, result)


@pytest.mark.parametrize(
    ("question", "yes", "no"),
    [
        ("null?", "null", "[]"),
        ("string?", '"a"', ":a"),
        ("str?", '""', "1"),
        ("boolean?", "false", "null"),
        ("keyword?", ":a", '"a"'),
        ("vector?", "[1]", "null"),
        ("list?", "(list 1)", "1"),
        ("object?", "{}", "[]"),
        ("function?", "map", "1"),
        ("number?", "1/2", "true"),
        ("true?", "true", "1"),
        ("false?", "false", "null"),
        ("empty?", "[]", "[1]"),
        ("empty?", '""', "0"),
        ("zero?", "0.0", "1"),
        ("pos?", "1", "0"),
        ("neg?", "-1/2", "0"),
        ("even?", "2.0", "3"),
        ("odd?", "3", "0"),
    ],
)
def test_questions_and_their_negations(question: str, yes: str, no: str) -> None:
    assert value(f"[({question} {yes}) ({question} {no}) (!{question} {yes}) (!{question} {no})]") == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("source", "said", "line"),
    [
        ('(+ 1 "x")', "`+` needs numbers, not a string", 1),
        ("\n(> 1 null)", "`>` needs numbers, not null", 2),
        ("(str\n (:a 5))", "`:a` needs an object, not a number", 2),
        ("(:a null)", "`:a` needs an object, not null", 1),
        ("(1.5 [1])", "a number cannot be called", 1),
        ("([1] 2)", "a sequence of length 1 has no part from 2", 1),
        ("([1] -1)", "no part from -1", 1),
        ("([1 2] 1 0)", "no part from 1 to 0", 1),
        ("('(1) 1)", "no part from 1", 1),
        ('([1] "0")', "an integer, not a string", 1),
        ("(eq (map inc [1]) [2])", "a lazy sequence cannot be compared", 1),
        ("(str (map inc [1]))", "a lazy sequence cannot be printed", 1),
        ("(conj {:a 1} [:b 2])", "use `assoc`", 1),
        ('(conj "a" "b")', "use `str`", 1),
        ("(assoc {:a 1} [:b 2])", "a key and a value, or a pair", 1),
        ("(seq->object [[:a 1] [:b 2]])", "a keyword or a string, not a sequence", 1),
        ("(first {:a 1})", "the script returns a pair", None),
        ("(length (cons 1 2))", "`length` needs a sequence", 1),
        ("(rest {:a 1})", "use `dissoc`", 1),
        ("(null 1)", "null cannot be called", 1),
        ("((lambda (a) a))", "the function takes 1 argument, not 0", 1),
        ("(map (lambda (a b) a) [1])", "the function takes 2 arguments, not 1", 1),
        ("(map mod [1])", "`mod` takes 2 arguments, not 1", 1),
        ("(nth [1] 5)", "a sequence of length 1 has no element 5", 1),
        ("(length 5)", "`length` needs a sequence", 1),
        ("(first 5)", "`first` needs a sequence", 1),
        ("({:a 1} 5)", "a keyword or a string, not a number", 1),
        ("(object 1 2)", "a keyword or a string, not a number", 1),
        ("(object :a)", "a value for every key", 1),
        ("(range 1 2 0)", "a step other than 0", 1),
        ("(range 1.5)", "needs an integer, not 1.5", 1),
        ("(/ 5 0)", "division by zero", 1),
        ("(case 1 [2 3])", "no clause of `case` matches", 1),
        ('(raise "no stock for " :a)', "no stock for :a", 1),
        ("\n\n(raise)", "raised an error without a message", 3),
        ("(/ 1.0 0)", "inf", None),
        ("inc", "the script returns a function", None),
        ("(try (raise 1) (catch [e number?] e))", "1", 1),
    ],
)
def test_a_failure_says_what_and_where(source: str, said: str, line: int | None) -> None:
    with pytest.raises(ScriptFailed) as caught:
        value(source)

    assert said in caught.value.reason
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("(fliter inc [1])", "Did you mean `filter`?"),
        ("(+ totel 1)", "Did you mean `total`?"),
        ("(lambda a a)", "must be in parentheses"),
        ("(lambda (a a) a)", "the same name"),
        ("(let ([a 1] [a 2]) a)", "bound twice"),
        ("(let ([a]) a)", "a name and a value"),
        ("(let 5 a)", "bindings are expected"),
        ("(if 1 2 3 4)", "(if test then else)"),
        ("(cond 1)", "a clause must be a test and a value"),
        ("(map if [1])", "`if` is not a value"),
        ("'a", "the symbol `a` is not a value"),
        ("(let* ([f (lambda (n) (f n))]) (f 1))", "there is no name `f`"),
        ("(try 1 (catch e 2))", "must bind a name"),
        ("1/0", "is not a number"),
    ],
)
def test_a_text_that_means_nothing_is_refused(source: str, said: str) -> None:
    with pytest.raises(BadScript) as caught:
        compile_script("ale", source, ["total"])

    assert said in str(caught.value)


# What the documents of steps show


@pytest.mark.parametrize(
    ("source", "given", "outputs"),
    [
        (
            "(let* ([net (* qty price)] [fee (if (>= net 100) 0 7.5)]) {:net net :fee fee :gross (+ net fee)})",
            {"qty": 2, "price": 20},
            {"net": 40, "fee": 7.5, "gross": 47.5},
        ),
        (
            '(and (> (length lines) 0) (eq (:state order) "open"))',
            {"lines": [1], "order": {"state": "open"}},
            {"result": True},
        ),
        ('(or (eq value "sms") (eq value "mail"))', {"value": "mail"}, {"result": True}),
        ('(str "id-" code)', {"code": "x"}, {"result": "id-x"}),
        ('(str "id-" code)', {"code": 3}, {"result": "id-3"}),
        ("(if note 1 2)", {"note": None}, {"result": 1}),
        ("(+ order-total 1)", {"order-total": 1}, {"result": 2}),
        ("{:first first}", {"first": "Ada"}, {"first": "Ada"}),
    ],
)
def test_the_programs_of_the_documents(source: str, given: dict[str, Any], outputs: dict[str, Any]) -> None:
    assert compile_script("ale", source, list(given)).call(given) == outputs


# Nothing is left, and nothing depends on the place


def test_no_call_changes_what_another_sees() -> None:
    script = compile_script("ale", "(let* ([q '(1 2)] [r (conj q a)]) {:q q :r r})", ["a"])

    assert script.call({"a": 3}) == {"q": [1, 2], "r": [3, 1, 2]}
    script.call({"a": 4})["q"].append("changed")
    assert script.call({"a": 5}) == {"q": [1, 2], "r": [5, 1, 2]}


def test_a_limit_cannot_be_caught() -> None:
    with pytest.raises(LimitExceeded):
        value("(try (map (lambda (x) (map inc (range 9999))) (range 9999)) (catch [e] 1))")


def test_depth_counts_again_after_an_error_was_caught() -> None:
    source = (
        "(let-rec ([f (lambda (n) (if (= n 0) (raise 1) (f (dec n))))])"
        " (map (lambda (i) (try (f 20) (catch [e] i))) (range 50)))"
    )

    assert value(source) == list(range(50))


def test_a_script_works_wherever_its_caller_stands() -> None:
    source = "(let-rec ([f (lambda (n) (if (= n 0) 0 (inc (f (dec n)))))]) (f n))"
    script = compile_script("ale", source, ["n"])

    def deep(levels: int) -> Any:
        return script.call({"n": 30}) if levels == 0 else deep(levels - 1)

    assert deep(0) == deep(300) == {"result": 30}
    frames = sys.getrecursionlimit()
    with pytest.raises((LimitExceeded, RecursionError)):
        deep(frames - 150)


def test_a_high_limit_of_recursion_does_not_let_a_script_overflow_the_stack() -> None:
    program = """
import sys, threading
sys.setrecursionlimit(10**6)
threading.stack_size(512 * 1024)
from weft.scripts import compile_script
from weft.errors import LimitExceeded
def work():
    for source in ("(let-rec ([f (lambda (x) (map f [x]))]) (f 1))", "(let-rec ([f (lambda (x) (apply f [x]))]) (f 1))",
                   "(let-rec ([f (lambda (x) (+ 1 (f x)))]) (f 1))"):
        try:
            compile_script("ale", source, []).call({})
        except LimitExceeded as error:
            print(error.context["limit"])
thread = threading.Thread(target=work); thread.start(); thread.join()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)

    assert ran.stdout.split() == ["depth"] * 3
