use std::fs;

use super::*;

#[test]
fn drawn_digits_do_not_depend_on_how_many_are_drawn_and_hold_all_ten() {
    let (few, many) = (Digits::draw(30, 5), Digits::draw(700, 5));
    assert_eq!(
        (&few.pixels[..], &few.labels[..]),
        (&many.pixels[..30 * PIXELS], &many.labels[..30])
    );
    assert_ne!(Digits::draw(30, 6), few);
    for digit in 0..10 {
        let share = many.labels.iter().filter(|&&label| label == digit).count();
        assert!((35..110).contains(&share), "{digit}: {share} of 700");
    }
    for i in 0..700 {
        let ink: u32 = many.picture(i).iter().map(|&p| u32::from(p)).sum();
        assert!((5_000..80_000).contains(&ink), "picture {i} has {ink}");
        let edge = many.picture(i).iter().enumerate().filter(|(p, _)| p % 28 == 0);
        assert!(edge.map(|(_, &p)| u32::from(p)).sum::<u32>() < 2_000, "picture {i} is cut off");
    }
}

#[test]
fn files_that_do_not_fit_together_are_refused() {
    let dir = std::env::temp_dir().join(format!("chainrule-digits-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let idx = |name: &str, shape: &[u32], data: &[u8]| {
        let mut out = vec![0, 0, 8, shape.len() as u8];
        out.extend(shape.iter().flat_map(|s| s.to_be_bytes()));
        out.extend(data);
        fs::write(dir.join(name), out).unwrap();
    };
    let why = || Digits::read_folder(&dir).unwrap_err().to_string();
    assert!(why().contains("train-images-idx3-ubyte: there is no such file"), "{}", why());
    idx("train-images-idx3-ubyte", &[2, 28, 28], &[9; 2 * 784]);
    idx("train-labels.idx1-ubyte", &[3], &[1, 2, 3]);
    assert!(why().contains("3 labels for 2 pictures"), "{}", why());
    idx("train-labels.idx1-ubyte", &[2], &[1, 10]);
    assert!(why().contains("label 1 is 10"), "{}", why());
    idx("train-labels.idx1-ubyte", &[2], &[1, 9]);
    idx("t10k-images-idx3-ubyte", &[1, 20, 28], &[9; 560]);
    idx("t10k-labels-idx1-ubyte", &[1], &[0]);
    assert!(why().contains("holds [1, 20, 28]"), "{}", why());
    idx("t10k-images-idx3-ubyte", &[1, 28, 28], &[255; 784]);
    let (train, test) = Digits::read_folder(&dir).unwrap();
    assert_eq!((train.len(), test.len()), (2, 1));
    let batch = test.batch(&[0]).unwrap();
    assert!((batch.x.to_vec::<f32>()[0] - 2.8215).abs() < 1e-3);
    assert_eq!(batch.y.to_vec::<i64>(), [0]);
    fs::remove_dir_all(&dir).unwrap();
    assert!(why().contains("no such folder"));
}
