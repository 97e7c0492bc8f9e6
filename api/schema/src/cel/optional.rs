//! Fields that may be absent: `self.?field`.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{EntryExpr, Expr, operators},
};

/// Reads `x.?field` as `x[?"field"]`, which means the same: the evaluator fails on the one where the field is absent,
/// and gives nothing for the other, as it should for both.
pub(super) fn as_indexes(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Call(call) => {
            if call.func_name == operators::OPT_SELECT {
                operators::OPT_INDEX.clone_into(&mut call.func_name);
            }
            call.target.as_deref_mut().into_iter().chain(&mut call.args).for_each(as_indexes);
        }
        Expr::Select(select) => as_indexes(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(as_indexes),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| in_entry(&mut entry.expr)),
        Expr::Struct(object) => object.entries.iter_mut().for_each(|entry| in_entry(&mut entry.expr)),
        Expr::Comprehension(each) => {
            for part in
                [&mut each.iter_range, &mut each.accu_init, &mut each.loop_cond, &mut each.loop_step, &mut each.result]
            {
                as_indexes(part);
            }
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn in_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => as_indexes(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            as_indexes(&mut entry.key);
            as_indexes(&mut entry.value);
        }
    }
}
