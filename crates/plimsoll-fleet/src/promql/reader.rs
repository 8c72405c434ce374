//! From words to a tree: what stands where, and what has which type.

use super::functions::function;
use super::lexer::{Kind, Token, error, tokens};
use super::{
    Aggregate, AggregateOp, At, Binary, BinaryOp, Call, Expr, Group, Labels, MatchOp, Matcher,
    QueryError, Selector, Sign, Subquery, Time, ValueType, regex,
};

/// Expressions within each other at most: reading goes as deep as they do.
const NESTED_MOST: usize = 64;
/// Operators, calls and parentheses at most: what walks over the tree goes as deep as there are.
const NODES_MOST: usize = 250;

/// Keywords that no metric may be called outside braces.
const RESERVED: [&str; 6] = ["atan2", "bool", "group_left", "group_right", "ignoring", "on"];

type Result<T> = std::result::Result<T, QueryError>;

/// Reads a query.
pub fn read(text: &str) -> Result<Expr> {
    let mut reader = Reader { text, tokens: tokens(text)?, next: 0, nested: 0, nodes: 0 };
    if reader.token().kind == Kind::End {
        return Err(error(text, 0, "the query is empty".to_owned()));
    }
    let expr = reader.expression(0)?;
    match reader.token() {
        Token { kind: Kind::End, .. } => Ok(expr),
        Token { text: symbol @ (")" | "]" | "}"), at, .. } => {
            Err(error(text, *at, format!("`{symbol}` closes nothing")))
        }
        _ => reader.expected("an operator or the end of the query"),
    }
}

struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
    nested: usize,
    nodes: usize,
}

impl<'a> Reader<'a> {
    /// The next word. The last one marks the end and is never passed.
    fn token(&self) -> &Token<'a> {
        &self.tokens[self.next]
    }

    fn advance(&mut self) -> Token<'a> {
        let token = self.token().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn refuse<T>(&self, at: usize, message: impl Into<String>) -> Result<T> {
        Err(error(self.text, at, message.into()))
    }

    /// An error that says what should be next.
    fn expected<T>(&self, what: &str) -> Result<T> {
        let token = self.token();
        let message = match token.kind {
            Kind::End => format!("the query ends where {what} should be"),
            _ => format!("`{}` stands where {what} should be", token.text),
        };
        self.refuse(token.at, message)
    }

    fn is(&self, symbol: &str) -> bool {
        self.token().kind == Kind::Symbol && self.token().text == symbol
    }

    fn take(&mut self, symbol: &str) -> bool {
        let there = self.is(symbol);
        if there {
            self.advance();
        }
        there
    }

    /// Takes a keyword, in letters of any case.
    fn take_word(&mut self, word: &str) -> bool {
        let there = self.token().kind == Kind::Word && self.token().text.eq_ignore_ascii_case(word);
        if there {
            self.advance();
        }
        there
    }

    /// Takes what closes a bracket that was opened at a place.
    fn close(&mut self, symbol: &str, opened: usize, what: &str) -> Result<()> {
        if self.take(symbol) {
            return Ok(());
        }
        if self.token().kind == Kind::End {
            let open = &self.text[opened..=opened];
            return self.refuse(opened, format!("`{open}` is not closed"));
        }
        self.expected(what)
    }

    /// Counts a part of the tree that has parts itself.
    fn node(&mut self, at: usize) -> Result<()> {
        self.nodes += 1;
        if self.nodes > NODES_MOST {
            return self.refuse(
                at,
                format!("more than {NODES_MOST} operators and calls are not looked at"),
            );
        }
        Ok(())
    }

    /// An expression up to the next operator that binds less than is asked for.
    fn expression(&mut self, least: u8) -> Result<Expr> {
        let at = self.token().at;
        self.nested += 1;
        if self.nested > NESTED_MOST {
            return self.refuse(at, format!("expressions are nested more than {NESTED_MOST} deep"));
        }
        let mut left = self.operand()?;
        while let Some(op) = self.operator().filter(|op| op.precedence() >= least) {
            let place = self.advance().at;
            self.node(place)?;
            let returns_bool = self.take_word("bool");
            let matching = if self.take_word("on") {
                Some(Labels::Only(self.labels()?))
            } else if self.take_word("ignoring") {
                Some(Labels::Except(self.labels()?))
            } else {
                None
            };
            let group = if matching.is_some() { self.group()? } else { None };
            let from = self.token().at;
            let right = self.expression(op.precedence() + u8::from(op != BinaryOp::Pow))?;
            let binary = Binary { op, left, right, returns_bool, matching, group };
            left = self.binary(binary, (at, place, from))?;
        }
        self.nested -= 1;
        Ok(left)
    }

    fn operator(&self) -> Option<BinaryOp> {
        let token = self.token();
        matches!(token.kind, Kind::Symbol | Kind::Word).then(|| BinaryOp::of(token.text)).flatten()
    }

    fn group(&mut self) -> Result<Option<Group>> {
        let side: fn(Vec<String>) -> Group = if self.take_word("group_left") {
            Group::Left
        } else if self.take_word("group_right") {
            Group::Right
        } else {
            return Ok(None);
        };
        let labels = if self.is("(") { self.labels()? } else { Vec::new() };
        Ok(Some(side(labels)))
    }

    /// Whether an operator fits what is on its sides. `places` are of the left side, the operator and the right side.
    fn binary(&self, binary: Binary, places: (usize, usize, usize)) -> Result<Expr> {
        let (left_at, at, right_at) = places;
        let Binary { op, left, right, returns_bool, matching, group } = &binary;
        let word = op.word();
        for (side, place) in [(left, left_at), (right, right_at)] {
            let kind = side.value_type();
            if !matches!(kind, ValueType::Scalar | ValueType::Vector) {
                return self.refuse(
                    place,
                    format!("`{word}` takes scalars and instant vectors, not {}", named(kind)),
                );
            }
        }
        if *returns_bool && !op.compares() {
            return self.refuse(at, format!("`bool` is for comparisons, and `{word}` is none"));
        }
        let vectors = [left, right].map(|side| side.value_type() == ValueType::Vector);
        if vectors == [false, false] && op.compares() && !returns_bool {
            return self.refuse(at, format!("scalars are compared with `{word} bool`"));
        }
        let labels = match matching {
            Some(Labels::Only(labels) | Labels::Except(labels)) => labels.as_slice(),
            None => &[],
        };
        if vectors != [true, true] {
            if op.is_for_sets() {
                return self.refuse(at, format!("`{word}` takes instant vectors, not scalars"));
            }
            if !labels.is_empty() {
                return self.refuse(at, "labels are matched between two instant vectors only");
            }
        } else if op.is_for_sets() && group.is_some() {
            return self
                .refuse(at, format!("`{word}` takes neither `group_left` nor `group_right`"));
        }
        if let (Some(Labels::Only(on)), Some(Group::Left(taken) | Group::Right(taken))) =
            (matching, group)
            && let Some(label) = taken.iter().find(|label| on.contains(label))
        {
            let message = format!("the label `{label}` is both matched on and taken over");
            return self.refuse(at, message);
        }
        Ok(Expr::Binary(Box::new(binary)))
    }

    /// What stands between operators. A sign binds like `*`, so that `-a ^ b` is `-(a ^ b)`.
    fn operand(&mut self) -> Result<Expr> {
        let sign = match self.token() {
            Token { kind: Kind::Symbol, text: "-", .. } => Sign::Minus,
            Token { kind: Kind::Symbol, text: "+", .. } => Sign::Plus,
            _ => {
                let at = self.token().at;
                let primary = self.primary()?;
                return self.modified(primary, at);
            }
        };
        let at = self.advance().at;
        self.node(at)?;
        let from = self.token().at;
        let inner = self.expression(BinaryOp::Pow.precedence())?;
        match (inner, sign) {
            (Expr::Number(value), Sign::Minus) => Ok(Expr::Number(-value)),
            (Expr::Number(value), Sign::Plus) => Ok(Expr::Number(value)),
            (inner, _) => match inner.value_type() {
                ValueType::Scalar | ValueType::Vector => Ok(Expr::Unary(sign, Box::new(inner))),
                kind => self.refuse(
                    from,
                    format!("a sign is for scalars and instant vectors, not {}", named(kind)),
                ),
            },
        }
    }

    fn primary(&mut self) -> Result<Expr> {
        let token = self.token().clone();
        match token.kind {
            Kind::Number(value) => {
                self.advance();
                Ok(Expr::Number(value))
            }
            Kind::Duration(milliseconds) => {
                self.advance();
                Ok(Expr::Number(milliseconds as f64 / 1000.0))
            }
            Kind::Text(text) => {
                self.advance();
                Ok(Expr::Text(text))
            }
            Kind::Word => self.named(&token),
            Kind::Symbol if token.text == "(" => {
                self.advance();
                self.node(token.at)?;
                let inner = self.expression(0)?;
                self.close(")", token.at, "an operator or `)`")?;
                Ok(Expr::Paren(Box::new(inner)))
            }
            Kind::Symbol if token.text == "{" => self.selector(None),
            Kind::Symbol | Kind::End => self.expected("an expression"),
        }
    }

    /// What a name stands for: an aggregation, a number, a function or a metric.
    fn named(&mut self, token: &Token<'a>) -> Result<Expr> {
        let name = token.text;
        let is = |word: &str| name.eq_ignore_ascii_case(word);
        if RESERVED.iter().any(|word| is(word)) {
            return self.expected("an expression");
        }
        self.advance();
        if is("inf") {
            return Ok(Expr::Number(f64::INFINITY));
        }
        if is("nan") {
            return Ok(Expr::Number(f64::NAN));
        }
        let grouped = self.token().kind == Kind::Word
            && ["by", "without"].iter().any(|word| self.token().text.eq_ignore_ascii_case(word));
        if let Some(op) = AggregateOp::of(name).filter(|_| grouped || self.is("(")) {
            return self.aggregate(op, token.at);
        }
        if self.is("(") {
            return self.call(name, token.at);
        }
        self.selector(Some(name))
    }

    fn aggregate(&mut self, op: AggregateOp, at: usize) -> Result<Expr> {
        self.node(at)?;
        let before = self.grouping()?;
        if !self.is("(") {
            return self.expected("`(`");
        }
        let args = self.arguments()?;
        let grouping = if before.is_some() { before } else { self.grouping()? };
        let word = op.word();
        let wanted = 1 + usize::from(op.param().is_some());
        if args.len() != wanted {
            return self.refuse(at, counted(word, wanted, wanted, args.len()));
        }
        let kinds = op.param().into_iter().chain([ValueType::Vector]);
        for ((argument, place), kind) in args.iter().zip(kinds) {
            self.takes(word, argument, *place, kind)?;
        }
        let mut args = args.into_iter().map(|(argument, _)| argument);
        let param = if op.param().is_some() { args.next() } else { None };
        match args.next() {
            Some(expr) => Ok(Expr::Aggregate(Box::new(Aggregate { op, param, expr, grouping }))),
            None => self.expected("an expression"),
        }
    }

    fn grouping(&mut self) -> Result<Option<Labels>> {
        if self.take_word("by") {
            Ok(Some(Labels::Only(self.labels()?)))
        } else if self.take_word("without") {
            Ok(Some(Labels::Except(self.labels()?)))
        } else {
            Ok(None)
        }
    }

    fn call(&mut self, name: &str, at: usize) -> Result<Expr> {
        self.node(at)?;
        let Some(function) = function(name) else {
            return self.refuse(at, format!("there is no function `{name}`"));
        };
        let args = self.arguments()?;
        let (least, most) = (function.least, function.most);
        if !(least..=most).contains(&args.len()) {
            return self.refuse(at, counted(name, least, most, args.len()));
        }
        for (index, (argument, place)) in args.iter().enumerate() {
            let kind = function.args[index.min(function.args.len() - 1)];
            self.takes(name, argument, *place, kind)?;
        }
        if let ("info", Some((second, place))) = (name, args.get(1))
            && !matches!(second, Expr::Selector(selector) if selector.name.is_none())
        {
            return self.refuse(*place, "`info` takes labels in braces here");
        }
        let args = args.into_iter().map(|(argument, _)| argument).collect();
        Ok(Expr::Call(Call { function, args }))
    }

    /// Expressions in parentheses, each with its place.
    fn arguments(&mut self) -> Result<Vec<(Expr, usize)>> {
        let opened = self.advance().at;
        let mut args = Vec::new();
        if self.take(")") {
            return Ok(args);
        }
        loop {
            let at = self.token().at;
            args.push((self.expression(0)?, at));
            if !self.take(",") {
                self.close(")", opened, "an operator, `,` or `)`")?;
                return Ok(args);
            }
        }
    }

    fn takes(&self, name: &str, argument: &Expr, at: usize, kind: ValueType) -> Result<()> {
        let given = argument.value_type();
        if given == kind {
            return Ok(());
        }
        self.refuse(at, format!("`{name}` takes {} here, not {}", named(kind), named(given)))
    }

    /// Labels in parentheses. Most keywords may be labels.
    fn labels(&mut self) -> Result<Vec<String>> {
        let opened = self.token().at;
        if !self.take("(") {
            return self.expected("`(` and labels");
        }
        let mut labels = Vec::new();
        while !self.is(")") {
            let token = self.token().clone();
            let never = ["inf", "nan", "without"];
            let label = match token.kind {
                Kind::Text(text) if !text.is_empty() => text,
                Kind::Word if !never.iter().any(|word| token.text.eq_ignore_ascii_case(word)) => {
                    token.text.to_owned()
                }
                _ => {
                    self.close(")", opened, "a label or `)`")?;
                    return Ok(labels);
                }
            };
            self.advance();
            labels.push(label);
            if !self.take(",") {
                break;
            }
        }
        self.close(")", opened, "`,` or `)`")?;
        Ok(labels)
    }

    fn selector(&mut self, name: Option<&str>) -> Result<Expr> {
        let at = self.token().at;
        let mut matchers = Vec::new();
        let mut selects = name.is_some();
        if self.take("{") {
            while !self.is("}") {
                let place = self.token().at;
                let (matcher, of_empty) = self.matcher(at)?;
                if name.is_some() && matcher.label == "__name__" {
                    return self.refuse(place, "the metric is named twice");
                }
                selects |= !of_empty;
                matchers.push(matcher);
                if !self.take(",") {
                    break;
                }
            }
            self.close("}", at, "`,` or `}`")?;
        }
        if !selects {
            return self.refuse(
                at,
                "it selects every series: one label at least must not match the empty text",
            );
        }
        Ok(Expr::Selector(Selector {
            name: name.map(str::to_owned),
            matchers,
            time: Time::default(),
        }))
    }

    /// One matcher, and whether the empty text matches it.
    fn matcher(&mut self, opened: usize) -> Result<(Matcher, bool)> {
        let token = self.token().clone();
        let (label, is_quoted) = match token.kind {
            Kind::Word if !token.text.contains(':') => (token.text.to_owned(), false),
            Kind::Text(text) => (text, true),
            _ => {
                self.close("}", opened, "a label or `}`")?;
                return self.expected("a label");
            }
        };
        self.advance();
        let op = match self.token().text {
            "=" => MatchOp::Equal,
            "!=" => MatchOp::NotEqual,
            "=~" => MatchOp::Regex,
            "!~" => MatchOp::NotRegex,
            _ if is_quoted => {
                let is_empty = label.is_empty();
                let name = "__name__".to_owned();
                return Ok((Matcher { label: name, op: MatchOp::Equal, value: label }, is_empty));
            }
            _ => return self.expected("`=`, `!=`, `=~` or `!~`"),
        };
        self.advance();
        let Token { kind: Kind::Text(value), at, .. } = self.token().clone() else {
            return self.expected("a quoted text");
        };
        self.advance();
        let of_empty = match op {
            MatchOp::Equal => value.is_empty(),
            MatchOp::NotEqual => !value.is_empty(),
            MatchOp::Regex | MatchOp::NotRegex => match regex::matches_empty(&value) {
                Ok(matches) => matches == (op == MatchOp::Regex),
                Err(message) => return self.refuse(at, format!("the pattern is none: {message}")),
            },
        };
        Ok((Matcher { label, op, value }, of_empty))
    }

    /// Ranges, `offset` and `@` behind an expression that begins at a place.
    fn modified(&mut self, mut expr: Expr, at: usize) -> Result<Expr> {
        loop {
            let place = self.token().at;
            if self.take("[") {
                expr = self.ranged(expr, at, place)?;
            } else if self.take_word("offset") {
                let back = !self.take("-");
                if back {
                    self.take("+");
                }
                let offset = self.milliseconds()?;
                let Some(time) = time_of(&mut expr) else {
                    return self
                        .refuse(place, "`offset` follows a selector, a range or a subquery");
                };
                if time.offset != 0 {
                    return self.refuse(place, "`offset` stands twice");
                }
                time.offset = if back { offset } else { -offset };
            } else if self.take("@") {
                let instant = self.instant()?;
                let Some(time) = time_of(&mut expr) else {
                    return self.refuse(place, "`@` follows a selector, a range or a subquery");
                };
                if time.at.is_some() {
                    return self.refuse(place, "`@` stands twice");
                }
                time.at = Some(instant);
            } else {
                return Ok(expr);
            }
        }
    }

    /// A range or a subquery, from behind its `[`.
    fn ranged(&mut self, expr: Expr, at: usize, opened: usize) -> Result<Expr> {
        let range = self.duration()?;
        if !self.take(":") {
            self.close("]", opened, "`:` or `]`")?;
            return match expr {
                // Prometheus minds a time before a range, and not `start()` or `end()`.
                Expr::Selector(selector)
                    if selector.time.offset == 0
                        && !matches!(selector.time.at, Some(At::Time(_))) =>
                {
                    Ok(Expr::Range(selector, range))
                }
                Expr::Selector(_) => {
                    self.refuse(opened, "`offset` and `@` stand behind a range, not before it")
                }
                _ => self.refuse(
                    opened,
                    "only a selector has a range; a subquery has a colon, such as `[5m:]`",
                ),
            };
        }
        let step = if self.is("]") { None } else { Some(self.duration()?) };
        self.close("]", opened, "a duration or `]`")?;
        match expr.value_type() {
            ValueType::Vector => {
                let time = Time::default();
                Ok(Expr::Subquery(Box::new(Subquery { expr, range, step, time })))
            }
            kind => {
                self.refuse(at, format!("a subquery is of an instant vector, not {}", named(kind)))
            }
        }
    }

    /// A duration that is more than 0; one below a millisecond is taken for one.
    fn duration(&mut self) -> Result<i64> {
        self.take("+");
        let Token { kind, at, .. } = self.token().clone();
        let milliseconds = self.milliseconds()?;
        if matches!(kind, Kind::Duration(0)) || kind == Kind::Number(0.0) {
            return self.refuse(at, "the duration must be greater than 0");
        }
        Ok(milliseconds.max(1))
    }

    /// A duration, or a number of seconds, rounded down to milliseconds.
    fn milliseconds(&mut self) -> Result<i64> {
        let token = self.token().clone();
        let milliseconds = match token.kind {
            Kind::Duration(milliseconds) => milliseconds,
            // Prometheus counts nanoseconds in 64 bits.
            Kind::Number(seconds) if seconds < 9_223_372_036.0 => (seconds * 1000.0) as i64,
            Kind::Number(_) => return self.refuse(token.at, "the duration is too long"),
            _ => return self.expected("a duration"),
        };
        self.advance();
        Ok(milliseconds)
    }

    /// What stands behind `@`.
    fn instant(&mut self) -> Result<At> {
        for (word, instant) in [("start", At::Start), ("end", At::End)] {
            if self.take_word(word) {
                let opened = self.token().at;
                if !self.take("(") {
                    return self.expected("`()`");
                }
                self.close(")", opened, "`)`")?;
                return Ok(instant);
            }
        }
        let minus = self.take("-");
        if !minus {
            self.take("+");
        }
        let token = self.token().clone();
        let milliseconds = match token.kind {
            Kind::Duration(milliseconds) => milliseconds as f64,
            Kind::Number(seconds) => (seconds * 1000.0).round(),
            _ => return self.expected("a time, `start()` or `end()`"),
        };
        self.advance();
        // A float beyond 64 bits is no time.
        if milliseconds >= i64::MAX as f64 {
            return self.refuse(token.at, "the time is out of bounds");
        }
        Ok(At::Time(if minus { -milliseconds } else { milliseconds } as i64))
    }
}

fn time_of(expr: &mut Expr) -> Option<&mut Time> {
    match expr {
        Expr::Selector(selector) | Expr::Range(selector, _) => Some(&mut selector.time),
        Expr::Subquery(subquery) => Some(&mut subquery.time),
        _ => None,
    }
}

fn counted(name: &str, least: usize, most: usize, given: usize) -> String {
    let wanted = match most {
        usize::MAX => format!("{least} or more"),
        most if most == least => least.to_string(),
        most => format!("{least} to {most}"),
    };
    let arguments = if most == 1 { "argument" } else { "arguments" };
    format!("`{name}` takes {wanted} {arguments}, and {given} are given")
}

fn named(kind: ValueType) -> &'static str {
    match kind {
        ValueType::Scalar => "a scalar",
        ValueType::Vector => "an instant vector",
        ValueType::Matrix => "a range vector",
        ValueType::String => "a string",
    }
}
