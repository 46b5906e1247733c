//! From tokens to nodes.

use super::functions::{FUNCTIONS, Fun};
use super::lex::{Lexed, Token, lex};
use super::{Compare, Id, Item, Node, Program, Type, Wrong};
use crate::decimal::Dec;
use crate::time::Unit;

/// Deepest nesting.
const MAX_DEPTH: u32 = 64;
/// Longest text, in bytes.
const MAX_TEXT: usize = 16 * 1024;

/// An expression and what is known of its type.
type Typed = (Id, Type);

/// Adds the nodes of a text to the program and returns the root.
pub fn parse(program: &mut Program, text: &str, wanted: Type) -> Result<Id, Wrong> {
    if text.len() > MAX_TEXT {
        return Err(Wrong::new(0, "an expression is at most 16 KiB long"));
    }
    let mut p = Parser { tokens: lex(text)?, at: 0, depth: 0, program };
    let root = p.or()?;
    if *p.token() != Token::End {
        return Err(p.unexpected("an operator or the end"));
    }
    p.check(root, wanted)?;
    Ok(root.0)
}

struct Parser<'p> {
    tokens: Vec<Lexed>,
    at: usize,
    depth: u32,
    program: &'p mut Program,
}

impl Parser<'_> {
    fn token(&self) -> &Token {
        &self.tokens[self.at].token
    }

    fn place(&self) -> u32 {
        self.tokens[self.at].at
    }

    /// Takes the token, except the last one.
    fn take(&mut self) -> Token {
        let t = self.token().clone();
        if t != Token::End {
            self.at += 1;
        }
        t
    }

    fn sign(&mut self, sign: &str) -> bool {
        let hit = matches!(self.token(), Token::Sign(s) if *s == sign);
        self.at += usize::from(hit);
        hit
    }

    fn word(&mut self, word: &str) -> bool {
        let hit = matches!(self.token(), Token::Word(w) if w == word);
        self.at += usize::from(hit);
        hit
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), Wrong> {
        if self.sign(sign) { Ok(()) } else { Err(self.unexpected(sign)) }
    }

    fn expect_word(&mut self, word: &'static str) -> Result<(), Wrong> {
        if self.word(word) { Ok(()) } else { Err(self.unexpected(word)) }
    }

    fn unexpected(&self, wanted: &str) -> Wrong {
        let found = match self.token() {
            Token::End => "the text ends".into(),
            Token::Pointer(scope, p) if scope.is_empty() && p.starts_with("/") => {
                format!("{p} is a pointer (to divide, write div(a, b) or div(a, b, digits))")
            }
            Token::Pointer(scope, p) => format!("{scope}{p} is a pointer"),
            Token::Number(_) => "there is a number".into(),
            Token::Text(_) => "there is a string".into(),
            Token::Word(w) => format!("there is {w}"),
            Token::Sign(s) => format!("there is {s}"),
        };
        Wrong::new(self.place(), format!("{found}, where {wanted} was expected"))
    }

    fn add(&mut self, node: Node, at: u32) -> Id {
        self.program.items.push(Item { node, at });
        self.program.items.len() as Id - 1
    }

    fn node(&self, id: Id) -> &Node {
        &self.program.items[id as usize].node
    }

    fn check(&self, (id, found): Typed, wanted: Type) -> Result<(), Wrong> {
        if wanted == Type::Any || found == Type::Any || found == wanted {
            return Ok(());
        }
        Err(Wrong::new(self.program.items[id as usize].at, format!("this is {}, where {} is needed", found.name(), wanted.name())))
    }

    /// One level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Wrong>) -> Result<T, Wrong> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Wrong::new(self.place(), "an expression is nested at most 64 deep"));
        }
        let done = parse(self);
        self.depth -= 1;
        done
    }

    fn or(&mut self) -> Result<Typed, Wrong> {
        let mut left = self.and()?;
        loop {
            let at = self.place();
            if !self.word("or") {
                return Ok(left);
            }
            let right = self.and()?;
            self.check(left, Type::Bool)?;
            self.check(right, Type::Bool)?;
            left = (self.add(Node::Or(left.0, right.0), at), Type::Bool);
        }
    }

    fn and(&mut self) -> Result<Typed, Wrong> {
        let mut left = self.not()?;
        loop {
            let at = self.place();
            if !self.word("and") {
                return Ok(left);
            }
            let right = self.not()?;
            self.check(left, Type::Bool)?;
            self.check(right, Type::Bool)?;
            left = (self.add(Node::And(left.0, right.0), at), Type::Bool);
        }
    }

    fn not(&mut self) -> Result<Typed, Wrong> {
        let at = self.place();
        if !self.word("not") {
            return self.comparison();
        }
        let what = self.nested(Self::not)?;
        self.check(what, Type::Bool)?;
        Ok((self.add(Node::Not(what.0), at), Type::Bool))
    }

    fn comparison(&mut self) -> Result<Typed, Wrong> {
        let left = self.sum()?;
        let at = self.place();
        let op = match self.token() {
            Token::Sign("=" | "==") => Compare::Equal,
            Token::Sign("!=" | "<>") => Compare::Unequal,
            Token::Sign("<") => Compare::Less,
            Token::Sign("<=") => Compare::LessEqual,
            Token::Sign(">") => Compare::Greater,
            Token::Sign(">=") => Compare::GreaterEqual,
            Token::Word(_) => return self.predicate(left, at),
            _ => return Ok(left),
        };
        self.take();
        let right = self.sum()?;
        let id = self.compare(op, left, right, at)?;
        Ok((id, Type::Bool))
    }

    fn compare(&mut self, op: Compare, left: Typed, right: Typed, at: u32) -> Result<Id, Wrong> {
        self.check(right, left.1)?;
        for side in [left, right] {
            if matches!(self.node(side.0), Node::Null) {
                return Err(Wrong::new(at, "nothing compares with null: write is null, or is not null"));
            }
            if side.1 == Type::Bool && !matches!(op, Compare::Equal | Compare::Unequal) {
                return Err(Wrong::new(at, "true and false are only equal or not"));
            }
        }
        Ok(self.add(Node::Compare(op, left.0, right.0), at))
    }

    /// `in (..)`, `between .. and ..`, `is null`, `is absent`, and their opposites.
    fn predicate(&mut self, left: Typed, at: u32) -> Result<Typed, Wrong> {
        if self.word("is") {
            let negated = self.word("not");
            let id = if self.word("null") {
                self.add(Node::IsNull(left.0), at)
            } else {
                self.expect_word("absent")?;
                let Node::Field(scope, slot) = *self.node(left.0) else {
                    return Err(Wrong::new(at, "only a pointer is absent; is null takes any expression"));
                };
                self.add(Node::IsAbsent(scope, slot), at)
            };
            return Ok((self.negate(id, negated, at), Type::Bool));
        }
        let negated = self.word("not");
        if self.word("in") {
            let list = self.list()?;
            for item in &list {
                self.check(*item, left.1)?;
            }
            let id = self.add(Node::In(left.0, list.into_iter().map(|i| i.0).collect()), at);
            return Ok((self.negate(id, negated, at), Type::Bool));
        }
        if self.word("between") {
            let low = self.sum()?;
            self.expect_word("and")?;
            let high = self.sum()?;
            let low = self.compare(Compare::GreaterEqual, left, low, at)?;
            let high = self.compare(Compare::LessEqual, left, high, at)?;
            let id = self.add(Node::And(low, high), at);
            return Ok((self.negate(id, negated, at), Type::Bool));
        }
        if negated { Err(self.unexpected("in or between")) } else { Ok(left) }
    }

    fn negate(&mut self, id: Id, negated: bool, at: u32) -> Id {
        if negated { self.add(Node::Not(id), at) } else { id }
    }

    /// Expressions in brackets.
    fn list(&mut self) -> Result<Vec<Typed>, Wrong> {
        self.expect("(")?;
        let mut list = Vec::new();
        if self.sign(")") {
            return Ok(list);
        }
        loop {
            list.push(self.nested(Self::or)?);
            if self.sign(")") {
                return Ok(list);
            }
            self.expect(",")?;
        }
    }

    fn sum(&mut self) -> Result<Typed, Wrong> {
        let mut left = self.product()?;
        loop {
            let at = self.place();
            let make: fn(Id, Id) -> Node = match self.token() {
                Token::Sign("+") => Node::Add,
                Token::Sign("-") => Node::Sub,
                Token::Sign("||") => |a, b| Node::Call(Fun::Concat, [a, b].into()),
                _ => return Ok(left),
            };
            let joins = self.take() == Token::Sign("||");
            let right = self.product()?;
            if joins {
                left = (self.add(make(left.0, right.0), at), Type::Text);
                continue;
            }
            self.check(left, Type::Number)?;
            self.check(right, Type::Number)?;
            left = (self.add(make(left.0, right.0), at), Type::Number);
        }
    }

    fn product(&mut self) -> Result<Typed, Wrong> {
        let mut left = self.unary()?;
        loop {
            let at = self.place();
            let make: fn(Id, Id) -> Node = match self.token() {
                Token::Sign("*") => Node::Mul,
                Token::Sign("%") => Node::Rem,
                _ => return Ok(left),
            };
            self.take();
            let right = self.unary()?;
            self.check(left, Type::Number)?;
            self.check(right, Type::Number)?;
            left = (self.add(make(left.0, right.0), at), Type::Number);
        }
    }

    fn unary(&mut self) -> Result<Typed, Wrong> {
        let at = self.place();
        if !self.sign("-") {
            return self.primary();
        }
        let what = self.nested(Self::unary)?;
        self.check(what, Type::Number)?;
        let negative = match self.node(what.0) {
            Node::Num(n) => n.neg().map(Node::Num),
            _ => None,
        };
        Ok((self.add(negative.unwrap_or(Node::Neg(what.0)), at), Type::Number))
    }

    fn primary(&mut self) -> Result<Typed, Wrong> {
        let at = self.place();
        match self.take() {
            Token::Number(n) => Ok((self.add(Node::Num(n), at), Type::Number)),
            Token::Text(s) => Ok((self.add(Node::Text(s.into_bytes().into()), at), Type::Text)),
            Token::Pointer(scope, p) => self.pointer(&scope, &p, at),
            Token::Sign("(") => {
                let inner = self.nested(Self::or)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Word(w) => match w.as_str() {
                "null" => Ok((self.add(Node::Null, at), Type::Any)),
                "true" | "false" => Ok((self.add(Node::Bool(w == "true"), at), Type::Bool)),
                "case" => self.nested(|p| p.case(at)),
                _ => self.call(&w, at),
            },
            _ => {
                self.at -= usize::from(self.place() != at);
                Err(self.unexpected("a value"))
            }
        }
    }

    fn pointer(&mut self, scope: &str, pointer: &str, at: u32) -> Result<Typed, Wrong> {
        let scopes = &self.program.scopes;
        let number = match scopes.iter().position(|s| s == scope) {
            Some(i) => i,
            None if scopes.is_empty() && scope.is_empty() => 0,
            None if scopes.is_empty() => return Err(Wrong::new(at, format!("{scope}{pointer}: a pointer has nothing before its /"))),
            None => return Err(Wrong::new(at, format!("a pointer begins with {}/", scopes.join("/ or ")))),
        };
        let slot = self.program.pointers[number].add(pointer).map_err(|why| Wrong::new(at, why))?;
        Ok((self.add(Node::Field(number as u8, slot as u32), at), Type::Any))
    }

    fn case(&mut self, at: u32) -> Result<Typed, Wrong> {
        let (mut arms, mut types) = (Vec::new(), Vec::new());
        while self.word("when") {
            let when = self.or()?;
            self.check(when, Type::Bool)?;
            self.expect_word("then")?;
            let then = self.or()?;
            arms.push((when.0, then.0));
            types.push(then.1);
        }
        if arms.is_empty() {
            return Err(self.unexpected("when"));
        }
        let otherwise = if self.word("else") { self.or()? } else { (self.add(Node::Null, at), types[0]) };
        types.push(otherwise.1);
        self.expect_word("end")?;
        let same = if types.iter().all(|t| *t == types[0]) { types[0] } else { Type::Any };
        Ok((self.add(Node::Case(arms.into(), otherwise.0), at), same))
    }

    fn call(&mut self, name: &str, at: u32) -> Result<Typed, Wrong> {
        if *self.token() != Token::Sign("(") {
            return Err(Wrong::new(at, format!("{name} is no function; a field is a JSON pointer (/{name}), a string stands in '..'")));
        }
        let Some((_, fun, types, least, most, result)) = FUNCTIONS.iter().find(|f| f.0 == name) else {
            return Err(Wrong::new(at, format!("there is no function {name}{}", nearest(name))));
        };
        let args = self.list()?;
        if !(*least..=*most).contains(&args.len()) {
            let wanted = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            return Err(Wrong::new(at, format!("{name} takes {wanted} arguments, not {}", args.len())));
        }
        for (i, arg) in args.iter().enumerate() {
            self.check(*arg, types[i.min(types.len() - 1)])?;
        }
        let node = match fun {
            Fun::FloorTime => Node::FloorTime(self.unit(args[1].0)?, args[0].0),
            Fun::Div | Fun::Round if args.len() == fun_digits(*fun) => {
                self.digits(args[args.len() - 1].0)?;
                Node::Call(*fun, args.iter().map(|a| a.0).collect())
            }
            _ => Node::Call(*fun, args.iter().map(|a| a.0).collect()),
        };
        Ok((self.add(node, at), *result))
    }

    fn unit(&self, id: Id) -> Result<Unit, Wrong> {
        let found = match self.node(id) {
            Node::Text(t) => std::str::from_utf8(t).ok().and_then(Unit::parse),
            _ => None,
        };
        found.ok_or_else(|| {
            let at = self.program.items[id as usize].at;
            Wrong::new(at, "a unit is 'second', 'minute', 'hour', 'day', 'week', 'month', 'year' or a duration such as '15m'")
        })
    }

    /// The number of digits after the point is a constant.
    fn digits(&self, id: Id) -> Result<(), Wrong> {
        match self.node(id) {
            Node::Num(n) if (Dec::ZERO..=Dec::int(18)).contains(n) && n.to_i64().is_some() => Ok(()),
            _ => Err(Wrong::new(self.program.items[id as usize].at, "the number of digits is a constant from 0 to 18")),
        }
    }
}

/// How many arguments there are when the last one is a number of digits.
fn fun_digits(fun: Fun) -> usize {
    if fun == Fun::Div { 3 } else { 2 }
}

/// A known function whose name is nearly this.
fn nearest(name: &str) -> String {
    let close = FUNCTIONS.iter().map(|f| (distance(name, f.0), f.0)).min();
    close.filter(|(d, _)| *d <= 2).map_or(String::new(), |(_, n)| format!("; did you mean {n}?"))
}

/// How many letters have to be added, dropped or changed.
fn distance(a: &str, b: &str) -> usize {
    let b = b.as_bytes();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (k, y) in b.iter().enumerate() {
            let change = before + usize::from(x != *y);
            before = row[k + 1];
            row[k + 1] = change.min(before + 1).min(row[k] + 1);
        }
    }
    row[b.len()]
}
