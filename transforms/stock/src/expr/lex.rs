//! From text to tokens.

use super::Wrong;
use crate::decimal::Dec;

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A JSON pointer, and the name before it (`left/price`), if any.
    Pointer(String, String),
    Number(Dec),
    Text(String),
    /// A name or keyword, in small letters.
    Word(String),
    /// An operator or bracket.
    Sign(&'static str),
    End,
}

/// A token and the character it begins with, counted from 0.
pub struct Lexed {
    pub token: Token,
    pub at: u32,
}

/// Two-character signs first.
const SIGNS: [&str; 17] = ["<=", ">=", "<>", "!=", "==", "||", "=", "<", ">", "+", "-", "*", "%", "(", ")", ",", "."];

/// Ends a pointer that is not in quotes.
fn ends_pointer(c: char) -> bool {
    c.is_whitespace() || "(),=<>!+*%|'\"".contains(c)
}

/// All tokens of a text, with `End` at the end.
pub fn lex(text: &str) -> Result<Vec<Lexed>, Wrong> {
    let chars: Vec<char> = text.chars().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    loop {
        while chars.get(at).is_some_and(|c| c.is_whitespace()) {
            at += 1;
        }
        let Some(&c) = chars.get(at) else {
            found.push(Lexed { token: Token::End, at: at as u32 });
            return Ok(found);
        };
        let (token, end) = match c {
            '\'' => quoted(&chars, at).map(|(s, end)| (Token::Text(s), end))?,
            '"' | '/' => pointer(&chars, at, String::new())?,
            '0'..='9' => number(&chars, at)?,
            c if c.is_ascii_alphabetic() || c == '_' => word(&chars, at)?,
            _ => sign(&chars, at)?,
        };
        found.push(Lexed { token, at: at as u32 });
        at = end;
    }
}

/// What stands between a quote and its twin; a doubled quote stands for one.
fn quoted(chars: &[char], from: usize) -> Result<(String, usize), Wrong> {
    let (quote, mut at, mut text) = (chars[from], from + 1, String::new());
    loop {
        match chars.get(at) {
            None => return Err(Wrong::new(from as u32, format!("a closing {quote} is missing"))),
            Some(c) if *c != quote => text.push(*c),
            _ if chars.get(at + 1) == Some(&quote) => {
                text.push(quote);
                at += 1;
            }
            _ => return Ok((text, at + 1)),
        }
        at += 1;
    }
}

fn pointer(chars: &[char], from: usize, scope: String) -> Result<(Token, usize), Wrong> {
    if chars[from] == '"' {
        return quoted(chars, from).map(|(p, end)| (Token::Pointer(scope, p), end));
    }
    let len = chars[from..].iter().take_while(|c| !ends_pointer(**c)).count();
    Ok((Token::Pointer(scope, chars[from..from + len].iter().collect()), from + len))
}

fn number(chars: &[char], from: usize) -> Result<(Token, usize), Wrong> {
    let mut end = from;
    while let Some(c) = chars.get(end) {
        let sign = matches!(c, '+' | '-') && matches!(chars[end - 1], 'e' | 'E');
        if !(c.is_ascii_alphanumeric() || *c == '.' || sign) {
            break;
        }
        end += 1;
    }
    let text: String = chars[from..end].iter().collect();
    match Dec::parse(text.as_bytes()) {
        Some(n) => Ok((Token::Number(n), end)),
        None => Err(Wrong::new(from as u32, format!("{text} is no number of at most 38 digits"))),
    }
}

fn word(chars: &[char], from: usize) -> Result<(Token, usize), Wrong> {
    let len = chars[from..].iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '_').count();
    let end = from + len;
    let name: String = chars[from..end].iter().map(char::to_ascii_lowercase).collect();
    match chars.get(end) {
        Some('/' | '"') => pointer(chars, end, name),
        _ => Ok((Token::Word(name), end)),
    }
}

fn sign(chars: &[char], at: usize) -> Result<(Token, usize), Wrong> {
    let known = SIGNS.iter().find(|s| s.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c)));
    match known {
        Some(s) => Ok((Token::Sign(s), at + s.len())),
        None => Err(Wrong::new(at as u32, format!("{:?} means nothing here", chars[at]))),
    }
}
