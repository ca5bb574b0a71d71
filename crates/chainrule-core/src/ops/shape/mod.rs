//! Ops that move elements without changing them. Where memory allows, the result is a view.

family! { Shape:
    cat
    diag_embed
    diagonal
    expand
    flip
    meshgrid
    movedim
    pad
    permute
    repeat
    repeat_interleave
    reshape
    roll
    slice
    split
    squeeze
    tril
    unflatten
    unfold
}

mod remap;
mod window;
