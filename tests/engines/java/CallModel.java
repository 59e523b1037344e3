import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.tensorflow.RawTensor;
import org.tensorflow.Result;
import org.tensorflow.SavedModelBundle;
import org.tensorflow.Tensor;
import org.tensorflow.TensorFlow;
import org.tensorflow.ndarray.buffer.ByteDataBuffer;
import org.tensorflow.types.TString;

/**
 * Calls the signatures of an exported model without Python.
 *
 * <p>Arguments: the folder of a version, the folder of TensorFlow Text's libraries, and a file of
 * calls: a signature in each line, and its texts by input, all separated by tabs, as in {@code
 * score source=a target=b}. Prints a line for each output: the number of the call, the name, the
 * shape, and the content in Base64.
 */
public final class CallModel {
  private static final int THREADS = 4;

  public static void main(String[] arguments) throws Exception {
    // Registers the operations that the graph uses besides TensorFlow's own.
    try (var libraries = Files.newDirectoryStream(Path.of(arguments[1]), "*.so")) {
      for (Path library : libraries) {
        TensorFlow.loadLibrary(library.toString());
      }
    }
    List<String> calls = Files.readAllLines(Path.of(arguments[2]));
    ExecutorService threads = Executors.newFixedThreadPool(THREADS);
    try (SavedModelBundle model = SavedModelBundle.load(arguments[0], "serve")) {
      // Each signature is compiled once, before the threads ask for it together.
      for (String call : calls) {
        answer(model, call);
      }
      List<List<Future<String>>> rounds = new ArrayList<>();
      for (int round = 0; round < THREADS; round++) {
        List<Future<String>> answers = new ArrayList<>();
        for (String call : calls) {
          answers.add(threads.submit(() -> answer(model, call)));
        }
        rounds.add(answers);
      }
      for (int number = 0; number < calls.size(); number++) {
        String first = rounds.get(0).get(number).get();
        for (List<Future<String>> answers : rounds) {
          if (!answers.get(number).get().equals(first)) {
            throw new IllegalStateException("threads differ: " + calls.get(number));
          }
        }
        for (String line : first.split("\n")) {
          System.out.println(number + "\t" + line);
        }
      }
    } finally {
      threads.shutdown();
    }
  }

  private static String answer(SavedModelBundle model, String call) {
    String[] words = call.split("\t");
    Map<String, Tensor> inputs = new TreeMap<>();
    for (int index = 1; index < words.length; index++) {
      String[] input = words[index].split("=", 2);
      inputs.put(input[0], TString.vectorOf(input[1].split("\\|")));
    }
    StringBuilder lines = new StringBuilder();
    try (Result outputs = model.function(words[0]).call(inputs)) {
      Map<String, Tensor> byName = new TreeMap<>();
      outputs.forEach(entry -> byName.put(entry.getKey(), entry.getValue()));
      byName.forEach(
          (name, tensor) ->
              lines.append(name).append('\t').append(shape(tensor)).append('\t')
                  .append(content(tensor)).append('\n'));
    }
    inputs.values().forEach(Tensor::close);
    return lines.toString();
  }

  private static String shape(Tensor tensor) {
    List<String> sizes = new ArrayList<>();
    for (long size : tensor.shape().asArray()) {
      sizes.add(Long.toString(size));
    }
    return String.join(",", sizes);
  }

  private static String content(Tensor tensor) {
    Base64.Encoder encoder = Base64.getEncoder();
    if (tensor instanceof TString) {
      List<String> texts = new ArrayList<>();
      ((TString) tensor)
          .asBytes().scalars().forEach(text -> texts.add(encoder.encodeToString(text.getObject())));
      return String.join(",", texts);
    }
    RawTensor raw = tensor.asRawTensor();
    ByteDataBuffer data = raw.data();
    byte[] bytes = new byte[(int) data.size()];
    data.read(bytes);
    return encoder.encodeToString(bytes);
  }
}
