"""What a pull request's comments say, as Markdown. May import the other folders of ``reporting``, and the model."""
