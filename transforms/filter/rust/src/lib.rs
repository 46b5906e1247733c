//! Passes the records that a condition holds for.

use stock::config::Config;
use stock::expr::{Expr, Program, Type, Work};
use wasmill::{Out, Port, Record, Result, Transform, Value};

const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
const ELSE: Port = Port::of(MANIFEST, "else");

wasmill::transform!(MANIFEST, Filter, Filter::new);

struct Filter {
    program: Program,
    condition: Expr,
    otherwise: bool,
    work: Work,
}

impl Filter {
    fn new(config: Value<'_>) -> Result<Filter> {
        let mut c = Config::new(config)?;
        let mut program = Program::new();
        let condition = program.compile("where", &c.required("where")?, Type::Bool)?;
        let otherwise = c.flag("else")?;
        c.finish()?;
        Ok(Filter { program, condition, otherwise, work: Work::default() })
    }
}

impl Transform for Filter {
    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        if self.program.row(&mut self.work, &r, out)?.is_true(self.condition)? {
            out.pass(&r, OUT);
        } else if self.otherwise {
            out.pass(&r, ELSE);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmill::testing::{Input, Output, run};

    fn filter(config: &str, values: &[&str]) -> Vec<Output> {
        let filter = Filter::new(Value::parse(config.as_bytes())).unwrap();
        let inputs: Vec<Input> = values.iter().map(|v| (*v).into()).collect();
        run(MANIFEST, filter, &inputs).unwrap()
    }

    #[test]
    fn passes_records_as_they_are() {
        let values = [r#"{"n": 11 ,"s":"a"}"#, r#"{"n":10,"s":"a"}"#, r#"{"s":"b"}"#, r#"{"n":12,"s":"c"}"#];
        let out = filter(r#"{"where":"/n > 10 and /s in ('a', 'b')"}"#, &values);
        assert_eq!(out.len(), 1);
        assert_eq!((out[0].port, out[0].value.as_deref(), out[0].index), (0, Some(values[0].as_bytes()), Some(0)));
        let out = filter(r#"{"where":"/n > 10","else":true}"#, &values);
        assert_eq!(out.iter().map(|o| o.port).collect::<Vec<_>>(), [0, 1, 1, 0]);
    }

    #[test]
    fn sets_aside_what_it_cannot_judge() {
        let out = filter(r#"{"where":"/n > 10"}"#, &[r#"{"n":"x"}"#, "no json", r#"{"n":11}"#]);
        let reject = |i: usize| out[i].reject.clone().unwrap();
        assert_eq!(reject(0), (0, "where, column 1: /n is \"x\", where a number is needed".into(), false));
        assert_eq!(reject(1), (1, "the value is not JSON".into(), false));
        assert!(out[2].reject.is_none() && out.len() == 3);
    }

    #[test]
    fn refuses_other_configurations() {
        for (config, want) in [
            ("{}", "config: where is missing"),
            (r#"{"where":"/a >"}"#, "config: where, column 5: the text ends, where a value was expected"),
            (r#"{"where":"/a + 1"}"#, "config: where, column 4: this is a number, where true or false is needed"),
            (r#"{"where":"/a","wher":1}"#, "config: wher is no setting of this transform"),
            ("[]", "config: it is not an object"),
        ] {
            let Err(e) = Filter::new(Value::parse(config.as_bytes())) else { panic!("{config} is taken") };
            assert_eq!(e.reason(), want, "{config}");
        }
    }
}
