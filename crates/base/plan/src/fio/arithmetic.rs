//! Numbers that are computed: `(64k * 4)`, `8*$mb_memory`.
//!
//! Invariant: any text gives a number or a reason; nesting is bounded, so that no text overflows
//! the stack. It has no units: the caller converts a number with letters.

use super::error::Why;

const DEPTH_MAX: u32 = 64;

/// The value of an expression of numbers, `+ - * / % ^` and parentheses.
pub(super) fn evaluate(text: &str, number: &dyn Fn(&str) -> Result<f64, Why>) -> Result<f64, Why> {
    let mut parser = Parser { rest: text.trim(), number, depth: 0 };
    let value = parser.sum()?;
    if !parser.rest.is_empty() {
        return Err(Why::new(format!("`{}` was not expected here", parser.rest)));
    }
    if value.is_finite() { Ok(value) } else { Err(Why::new("the result is no number")) }
}

struct Parser<'a> {
    rest: &'a str,
    number: &'a dyn Fn(&str) -> Result<f64, Why>,
    depth: u32,
}

impl Parser<'_> {
    fn take(&mut self, signs: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let sign = self.rest.chars().next().filter(|sign| signs.contains(sign))?;
        self.rest = self.rest[sign.len_utf8()..].trim_start();
        Some(sign)
    }

    fn sum(&mut self) -> Result<f64, Why> {
        let mut value = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let next = self.product()?;
            value = if sign == '+' { value + next } else { value - next };
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<f64, Why> {
        let mut value = self.power()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let next = self.power()?;
            if sign != '*' && next == 0.0 {
                return Err(Why::new("it divides by 0"));
            }
            value = match sign {
                '*' => value * next,
                '/' => value / next,
                _ => value % next,
            };
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<f64, Why> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Why::new("it is nested too deeply"));
        }
        let base = self.atom()?;
        let value = match self.take(&['^']) {
            Some(_) => base.powf(self.power()?),
            None => base,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn atom(&mut self) -> Result<f64, Why> {
        if self.take(&['(']).is_some() {
            let value = self.sum()?;
            return match self.take(&[')']) {
                Some(_) => Ok(value),
                None => Err(Why::new("a `)` is missing")),
            };
        }
        if self.take(&['-']).is_some() {
            return Ok(-self.power()?);
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.');
        let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if digits.is_empty() {
            return Err(Why::new("a number is missing"));
        }
        self.rest = rest;
        (self.number)(digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Result<f64, Why> {
        text.parse().map_err(|_| Why::new(format!("`{text}` is no number")))
    }

    #[test]
    fn operators_bind_as_usual() {
        for (text, value) in [
            ("1+2*3", 7.0),
            ("(1+2)*3", 9.0),
            ("2^3^2", 512.0),
            ("10 - 4 - 3", 3.0),
            ("7 % 4", 3.0),
            ("-2 + 5", 3.0),
            ("8/2/2", 2.0),
        ] {
            assert_eq!(evaluate(text, &plain), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_an_error() {
        for text in ["", "1+", "(1", "1)", "1/0", "x", "1 2", "9^9^9^9", "2*)"] {
            assert!(evaluate(text, &plain).is_err(), "{text}");
        }
        assert!(evaluate(&"(".repeat(100_000), &plain).is_err());
        assert!(evaluate(&"-".repeat(100_000), &plain).is_err());
    }
}
